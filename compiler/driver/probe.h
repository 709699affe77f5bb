/// Compares what generic plans compute with the model, at shapes that are no samples of theirs: a formula
/// that does not hold there shows in the values, though no output's shape tells. Thread-safety: pure
/// functions.
#pragma once

#include <memory>
#include <vector>

#include "compiler/ir/variants.h"
#include "runtime/package/package_reader.h"

namespace tensormill::driver {

/// A plan takes extents of a dim from this one on.
struct RaisedMinimum {
  const package::GenericPlan* plan = nullptr;  ///< of the package
  size_t dim = 0;
  int64_t least = 0;
};

struct Probed {
  bool is_complete = true;  ///< there is a plan for each of the probes
  std::vector<RaisedMinimum> raised;
};

/// Runs the package at the probes of `variants`. Those of a dim are compared where at the samples' extent of
/// it the model's outputs come out alike, so that nets whose outputs jump about are left alone; what takes
/// long to compute is left out. Throws what a run throws, but for data that a node refuses.
Probed run_probes(const std::shared_ptr<const package::LoadedPackage>& package, const ir::Variants& variants);

}  // namespace tensormill::driver
