/// One package over a set of inputs: what it says of each example, and what that takes.
/// Thread-safety: a call belongs to one thread, with the executor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/json_fwd.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/npz/npz.h"
#include "server/report/times.h"

namespace tensormill::report {

struct EvaluationOptions {
  std::string scores;   ///< output with a score for each class; "": the first
  int64_t samples = 0;  ///< the most to look at; 0: all
  TimesOptions times;   ///< of the first batch, as `run` measures
  /// Where the processor's counters of energy are; "": they are not read, by a process that opens no files.
  std::string energy_root = "/sys/class/powercap";
};

/// The set holds each input of the package by name. The first extent of an input is its batch, where it is
/// free a batch of 1; an array of the set has as many rows as several of them, or one that goes with all.
/// JSON:
///   times: as `run --json`, and p95_ms;  batch, samples;  pass_s: of the whole set;  samples_per_s;
///   energy_j: of the pass, null where it cannot be read;  interpreted: whether a shape had no kernels;
///   steps: [{name, us, share}] of the slowest three;
///   best: the class with the largest score of each example, null where scores are not a row an example.
/// Throws Error(kInvalidTensor) for a set that does not fit, and what GraphExecutor::run throws.
Json evaluate(exec::GraphExecutor& executor, parallel::ThreadPool& pool, const exec::RunOptions& run_options,
              const std::vector<npz::NamedTensor>& set, const EvaluationOptions& options);

}  // namespace tensormill::report
