#include "compiler/plan/sample_chances.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "compiler/ir/storage.h"

namespace tensormill::plan {

namespace {

/// Whether a move changes nothing; of a pad, how much it adds or cuts, since what cuts in all samples may add
/// at other extents; of a concat, which parts have elements; of a product of integers, how many are added up;
/// of another one, whether it has a single row.
std::vector<int64_t> effect_of(const ir::Graph& graph, const ir::Node& node) {
  constexpr std::array<std::string_view, 4> kMoves = {"expand", "reshape", "slice", "tile"};
  if (node.op == "pad") return node.attrs.ints_of("pads");
  if (node.op == "matmul" && !is_float(graph.value(node.outputs[0]).type.dtype)) {
    const Shape& left = graph.value(node.inputs[0]).type.shape;
    const bool turned =
        left.size() > 1 && node.attrs.has("transpose_a") && node.attrs.int_of("transpose_a") != 0;
    return {left.empty() ? 0 : left[left.size() - (turned ? 2 : 1)]};
  }
  if (node.op == "matmul") {
    const Shape& left = graph.value(node.inputs[0]).type.shape;
    return {left.size() > 1 && left[left.size() - 2] == 1 ? 1 : 0};
  }
  if (node.op == "concat") {
    std::vector<int64_t> parts;
    for (const ir::ValueId part : node.inputs)
      parts.push_back(num_elements(graph.value(part).type.shape) != 0 ? 1 : 0);
    return parts;
  }
  if (std::find(kMoves.begin(), kMoves.end(), node.op) == kMoves.end()) return {};
  return {graph.value(node.inputs[0]).type == graph.value(node.outputs[0]).type ? 0 : 1};
}

/// By value: itself, or the first constant of equal bytes, if they are few.
std::vector<ir::ValueId> first_equal(const ir::Graph& graph) {
  constexpr size_t kMostBytes = 256;
  std::vector<ir::ValueId> same(graph.values().size());
  std::map<std::tuple<DType, Shape, std::string_view>, ir::ValueId> constants;
  for (size_t i = 0; i < same.size(); ++i) {
    same[i] = static_cast<ir::ValueId>(i);
    const std::optional<Tensor>& constant = graph.values()[i].constant;
    if (!constant || constant->num_bytes() > kMostBytes) continue;
    const std::string_view bytes(static_cast<const char*>(constant->data()), constant->num_bytes());
    same[i] =
        constants.emplace(std::tuple(constant->dtype(), constant->shape(), bytes), same[i]).first->second;
  }
  return same;
}

/// By node: the first one that computes the same.
std::vector<ir::NodeId> first_alike(const ir::Graph& graph) {
  std::vector<ir::ValueId> same = first_equal(graph);
  std::map<std::pair<std::string_view, std::vector<ir::ValueId>>, std::vector<ir::NodeId>> seen;
  std::vector<ir::NodeId> result;
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const ir::Node& node = graph.nodes()[n];
    const auto id = static_cast<ir::NodeId>(n);
    std::vector<ir::ValueId> inputs;
    for (const ir::ValueId input : node.inputs)
      inputs.push_back(input == ir::kAbsent ? input : same[static_cast<size_t>(input)]);
    std::vector<ir::NodeId>& candidates = seen[{node.op, std::move(inputs)}];
    const auto found = std::find_if(candidates.begin(), candidates.end(), [&](ir::NodeId other) {
      return graph.node(other).attrs == node.attrs && graph.node(other).outputs.size() == node.outputs.size();
    });
    result.push_back(found == candidates.end() ? id : *found);
    if (found == candidates.end()) {
      candidates.push_back(id);
      continue;
    }
    for (size_t i = 0; i < node.outputs.size(); ++i)
      same[static_cast<size_t>(node.outputs[i])] = graph.node(*found).outputs[i];
  }
  return result;
}

}  // namespace

std::set<ir::NodeId> chances_of(const std::vector<ir::Graph>& samples) {
  std::set<ir::NodeId> chances;
  const ir::Graph& first = samples.front();
  const std::vector<ir::NodeId> alike = first_alike(first);
  const ir::Storage first_storage(first, true);
  for (const ir::Graph& sample : samples) {
    const std::vector<ir::NodeId> own = first_alike(sample);
    const ir::Storage storage(sample, true);
    for (size_t n = 0; n < own.size(); ++n) {
      const auto id = static_cast<ir::NodeId>(n);
      // What lies inside of another value is not fused.
      const bool is_chance = own[n] != alike[n] || storage.is_view(id) != first_storage.is_view(id) ||
                             effect_of(sample, sample.nodes()[n]) != effect_of(first, first.nodes()[n]);
      if (is_chance) chances.insert(id);
    }
  }
  return chances;
}

}  // namespace tensormill::plan
