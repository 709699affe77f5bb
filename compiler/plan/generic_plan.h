/// The generic plan of a model: steps whose kernels take extents as arguments, and, of nodes whose extents
/// are numbers, the kernels that they have in other plans (symbolic_plan.h makes it). Thread-safety: values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/plan/generic_knobs.h"
#include "compiler/plan/plan_builder.h"
#include "compiler/te/stmt.h"
#include "runtime/base/digest.h"
#include "runtime/package/plan_set.h"

namespace tensormill::plan {

struct GenericKernel {
  std::string symbol;
  Digest key;  ///< of the text of the loops that the rule makes
  te::Function loops;
  std::vector<std::string> origins;
  std::shared_ptr<const GenericSource> source;  ///< what other loops of it can be made of
};

/// The steps of one node, to be checked against its reference.
struct GenericGroup {
  ir::NodeId node = 0;
  size_t first_step = 0, end_step = 0;
  std::vector<int32_t> inputs, outputs;  ///< buffers, in the order of the node's kernel
};

/// A kernel of constant extents, and the steps that call it.
struct FixedKernel {
  Kernel kernel;
  std::vector<ir::ValueId> inputs;  ///< of the graph, of its first call
  std::vector<std::string> origins;
  std::vector<size_t> steps;  ///< their workspaces are not known before the kernel is compiled
};

struct GenericModel {
  package::GenericPlan plan;
  std::vector<ParamSegment> params;
  std::vector<GenericKernel> kernels;
  std::vector<std::optional<size_t>> step_kernels;  ///< by step; nothing for the host's, and fixed kernels
  std::vector<FixedKernel> fixed;                   ///< those of constant extents, in the order of first use
  std::vector<GenericGroup> groups;
};

}  // namespace tensormill::plan
