/// What the automatic scheduler finds for operators whose templates hold no choice, or that have none.
/// Thread-safety: pure functions but for the measuring.
#pragma once

#include <string>
#include <vector>

#include "compiler/target/target.h"

namespace tensormill::bench {

struct SketchResult {
  std::string name;
  double default_seconds = 0, best_seconds = 0;  ///< measured in turns
  int64_t trials = 0, failed = 0;
};

/// Tunes each operator of the list whose name contains `part` with `trials` trials; `program` runs the
/// candidates.
std::vector<SketchResult> tune_sketches(const target::Target& target, const std::string& program,
                                        int64_t trials, const std::string& part);
/// The mean of default ÷ best.
double mean_gain(const std::vector<SketchResult>& results);

}  // namespace tensormill::bench
