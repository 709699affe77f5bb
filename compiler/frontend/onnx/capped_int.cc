// Numbers of which no more counts than an extent.
#include <algorithm>
#include <array>

#include "compiler/frontend/onnx/bounds.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

constexpr int kMostNodes = 64;

/// Whether a known value is made of extents, by the nodes that it comes from, of which a few are looked at.
bool is_of_shapes(const ir::Graph& graph, V id) {
  std::vector<V> open{id};
  for (int visited = 0; !open.empty() && visited < kMostNodes; ++visited) {
    const ir::NodeId producer = graph.value(open.back()).producer;
    open.pop_back();
    if (producer == ir::kAbsent) continue;
    if (graph.node(producer).attrs.has("is_shape")) return true;
    for (const V input : graph.node(producer).inputs) {
      if (input != ir::kAbsent) open.push_back(input);
    }
  }
  return false;
}

struct KnownNumber {
  int64_t value = 0;
  bool is_extent = false;
};

/// The known numbers of which a known value is the least, by the nodes that it comes from.
std::vector<KnownNumber> least_of(const ir::Graph& graph, V id) {
  constexpr std::array<std::string_view, 6> kMoves = {"identity", "cast",       "reshape",
                                                      "min",      "reduce_min", "concat"};
  std::vector<KnownNumber> numbers;
  std::vector<V> open{id};
  for (int visited = 0; !open.empty(); ++visited) {
    const V own = open.back();
    const ir::Value& value = graph.value(own);
    open.pop_back();
    const ir::Node* node = value.producer == ir::kAbsent ? nullptr : &graph.node(value.producer);
    const bool is_move = node != nullptr && !node->attrs.has("is_shape") &&
                         std::find(kMoves.begin(), kMoves.end(), node->op) != kMoves.end();
    if (is_move && visited < kMostNodes) {
      open.insert(open.end(), node->inputs.begin(), node->inputs.end());
    } else if (value.known && !is_float(value.type.dtype)) {
      const bool is_extent = is_of_shapes(graph, own);
      for (int64_t i = 0; i < value.known->num_elements(); ++i)
        numbers.push_back({value.known->element_as_int(i), is_extent});
    }
  }
  return numbers;
}

}  // namespace

BoundedInt capped_int(NodeContext& context, size_t index, const char* what, const ir::SymInt& extent) {
  if (context.binds_runs()) return bounded_int(context, index, what);
  const V value = context.input(index);
  const bool is_one = num_elements(context.type(value).shape) == 1 && !is_float(context.type(value).dtype);
  if (is_one && !context.is_computable(value) && !bounds_of(context, value, std::nullopt))
    return {extent, value, 0};
  const BoundedInt number = bounded_int(context, index, what);
  if (!context.is_sample() || !number.is_known()) return number;
  std::vector<KnownNumber> numbers = least_of(context.graph(), context.input(index));
  const auto is_own = [&](const KnownNumber& each) { return each.value == extent; };
  if (numbers.size() < 2 || std::none_of(numbers.begin(), numbers.end(), is_own)) return number;
  const auto is_extent = [](const KnownNumber& each) { return each.is_extent; };
  const bool are_extents = std::any_of(numbers.begin(), numbers.end(), is_extent);
  std::erase_if(numbers, is_extent);
  // The less of extents is a formula.
  if (numbers.empty()) return number;
  // A number that is the extent by chance is no other than that.
  if (!are_extents) std::erase_if(numbers, is_own);
  int64_t cap = numbers.empty() ? ir::SymInt(extent) : ir::SymInt(numbers[0].value);
  for (const KnownNumber& each : numbers) cap = std::min(cap, each.value);
  if (cap < 0 || cap > kMaxPadded) return number;
  return {cap, context.input(index), 0};
}

}  // namespace tensormill::frontend::onnx
