#include "compiler/plan/slice_starts.h"

#include <algorithm>
#include <optional>

#include "compiler/plan/generic_plan.h"

namespace tensormill::plan {

namespace {

std::vector<std::vector<int64_t>> dims_of(const std::vector<const ir::ShapedGraph*>& samples) {
  std::vector<std::vector<int64_t>> dims;
  for (const ir::ShapedGraph* sample : samples) dims.push_back(sample->dims);
  return dims;
}

}  // namespace

SliceStarts::SliceStarts(const std::vector<const ir::ShapedGraph*>& samples)
    : num_nodes_(samples.front()->graph.nodes().size()), fitter_(dims_of(samples)) {
  const bool is_alike = std::all_of(samples.begin(), samples.end(), [&](const ir::ShapedGraph* sample) {
    return sample->graph.nodes().size() == num_nodes_;
  });
  std::vector<const ir::Graph*> graphs;
  for (const ir::ShapedGraph* sample : samples) graphs.push_back(&sample->graph);
  for (SliceFact& slice : slice_facts(graphs)) fitter_.add_slice(std::move(slice));
  for (size_t i = 0; i < num_nodes_ && is_alike; ++i) {
    if (samples.front()->graph.nodes()[i].op == "slice") add(samples, i);
  }
}

bool SliceStarts::give(const ir::ShapedGraph& shaped) const {
  if (shaped.graph.nodes().size() != num_nodes_) return true;
  const std::vector<int64_t> dims = with_derived(shaped.dims, fitter_.derived());
  return std::all_of(starts_.begin(), starts_.end(), [&](const Start& start) {
    const ir::Node& node = shaped.graph.nodes()[start.node];
    if (node.op != "slice") return true;
    // Where a slice of no elements starts does not matter.
    return num_elements(shaped.graph.value(node.outputs[0]).type.shape) == 0 ||
           node.attrs.ints_of("starts").at(start.axis) == evaluate(start.value, dims);
  });
}

void SliceStarts::add(const std::vector<const ir::ShapedGraph*>& samples, size_t node) {
  const size_t rank = samples.front()->graph.nodes()[node].attrs.ints_of("starts").size();
  for (size_t axis = 0; axis < rank; ++axis) {
    std::vector<int64_t> values;
    for (const ir::ShapedGraph* sample : samples)
      values.push_back(sample->graph.nodes()[node].attrs.ints_of("starts").at(axis));
    if (std::optional<DimFormula> value = fitter_.fit(values)) starts_.push_back({node, axis, *value});
  }
}

}  // namespace tensormill::plan
