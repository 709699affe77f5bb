/// The generic plan of a model: optimized graphs of several shapes, which must be one graph but for extents,
/// become steps whose kernels take extents as arguments. Thread-safety: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/variants.h"
#include "compiler/plan/generic_nest.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/plan_builder.h"
#include "compiler/plan/shape_constants.h"
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

/// What of a sample's graph the generic plan is made from: all but its weights.
struct GraphForm {
  std::vector<int64_t> dims;
  std::vector<Shape> shapes;         ///< by value
  std::vector<bool> same_constants;  ///< by value: constants that the first sample has too
  std::vector<Nests> nests;          ///< by node; none for views and host steps
};

/// `graph` is the model for `dims`, `first` the first sample's graph. Throws Error(kNotSupported) where they
/// differ in more than extents.
GraphForm form_of(const ir::Graph& graph, const std::vector<int64_t>& dims, const ir::Graph& first);

/// What the samples' extents are made of that no dim says.
struct ExtentFacts {
  std::vector<float> factors;    ///< by which the model multiplies extents, beyond small quotients
  std::vector<float> quotients;  ///< of that kind, which are no whole numbers
  std::vector<std::vector<int64_t>> extents;  ///< of the model's values in order: one value a sample
  struct Ratio {
    std::vector<int64_t> up, down;
    size_t extents = 0;  ///< so many of the extents come before it
  };
  std::vector<Ratio> ratios;  ///< which the model divides: one value a sample
  std::vector<SliceFact> slices;
  std::vector<int64_t> maximums;             ///< of the free dims, 0 where there is none; or none at all
  std::vector<ir::DependentDim> dependents;  ///< free dims that follow from others: no formula is over them
};
/// The model's slices that axes may end before, along each axis of which that can be.
std::vector<SliceFact> slice_facts(const std::vector<const ir::Graph*>& samples);
/// `samples`: the imported graphs. Extents are listed where there is a factor or a ratio; `all`: everywhere,
/// and the integers that the model computes from shapes.
ExtentFacts extent_facts(const std::vector<const ir::Graph*>& samples, bool all = false);

/// The plan is that of `first`, whose form is the first of the samples; its last inputs are `hidden`. `lanes`
/// of 32 bits a vector. Throws Error(kNotSupported) naming the node and what has no formula.
GenericModel generalize_model(const ir::Graph& first, const std::vector<GraphForm>& samples,
                              const std::vector<HiddenConstant>& hidden, const ExtentFacts& facts,
                              const std::vector<std::string>& output_names, int lanes);

}  // namespace tensormill::plan
