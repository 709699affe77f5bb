/// The generic plan of a model: steps whose kernels take extents as arguments (symbolic_plan.h makes it).
/// Thread-safety: values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/plan/plan_builder.h"
#include "compiler/te/stmt.h"
#include "runtime/base/digest.h"
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
  std::vector<std::optional<size_t>> step_kernels;  ///< by step; nothing for the host's
  std::vector<GenericGroup> groups;
};

}  // namespace tensormill::plan
