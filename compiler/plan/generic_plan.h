/// The generic plan of a model: optimized graphs of several shapes, which must be one graph but for extents,
/// become steps whose kernels take extents as arguments. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/generic_nest.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/plan_builder.h"
#include "runtime/package/plan_set.h"

namespace tensormill::plan {

struct GenericKernel {
  std::string symbol;
  Digest key;  ///< of the loops' text
  te::Function loops;
  std::vector<std::string> origins;
};

/// The steps of one node, to be checked against its reference.
struct GenericGroup {
  ir::NodeId node = 0;
  size_t first_step = 0, end_step = 0;
  std::vector<int32_t> inputs, outputs;  ///< buffers, in the order of the node's kernel
};

struct GenericModel {
  package::GenericPlan plan;  ///< workspaces are none: registers are all that the loops need
  std::vector<ParamSegment> params;
  std::vector<GenericKernel> kernels;
  std::vector<size_t> step_kernels;  ///< by step
  std::vector<GenericGroup> groups;
};

/// `graphs[i]` is the model for `dims[i]`; the plan is the first one's. `lanes` of 32 bits a vector. Throws
/// Error(kNotSupported) naming the node and what has no formula.
GenericModel generalize_model(const std::vector<ir::Graph>& graphs,
                              const std::vector<std::vector<int64_t>>& dims,
                              const std::vector<std::string>& output_names, int lanes);

}  // namespace tensormill::plan
