/// Compares what generic plans compute with the model at small shapes: the last look at a whole plan before
/// it is published. Thread-safety: pure functions.
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

/// Runs the package at shapes of which one dim is small. Those of a dim are compared where at the plan's own
/// extent of it the outputs come out alike, so that nets whose outputs jump about are left alone; what takes
/// long to compute is left out. Throws what a run throws, but for data that a node refuses.
Probed run_probes(const std::shared_ptr<const package::LoadedPackage>& package, const ir::Variants& variants);

}  // namespace tensormill::driver
