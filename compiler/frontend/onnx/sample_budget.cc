#include "compiler/frontend/onnx/sample_budget.h"

#include <algorithm>

namespace tensormill::frontend::onnx {

namespace {

size_t nodes_of(const std::optional<ir::ShapedGraph>& sample) {
  return sample ? sample->graph.nodes().size() : 0;
}

}  // namespace

void SampleBudget::begin() {
  spent_ = 0;
  least_.reset();
  most_.reset();
}

void SampleBudget::check() const {
  constexpr size_t kAtLeast = size_t{1} << 16, kImports = 1500;
  if (spent_ > std::max(kAtLeast, kImports * std::max(nodes_, nodes_of(least_)))) throw Spent();
}

void SampleBudget::take(size_t nodes, const std::vector<int64_t>& dims, const ir::Graph& graph) {
  spend(nodes);
  // Where an axis is empty the graph shows little of the model, and kernels for it serve nobody.
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  const size_t own = graph.nodes().size();
  if (!least_ || own < nodes_of(least_)) least_ = {dims, graph};
  if (own > std::max(nodes_of(least_), nodes_of(most_))) most_ = {dims, graph};
}

ir::SampleSet SampleBudget::instead() const {
  ir::SampleSet set;
  if (least_) set.samples.push_back(*least_);
  if (most_) set.samples.push_back(*most_);
  return set;
}

}  // namespace tensormill::frontend::onnx
