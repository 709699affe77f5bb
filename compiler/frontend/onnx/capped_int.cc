// Numbers of which no more counts than an extent.
#include <algorithm>
#include <array>

#include "compiler/frontend/onnx/bounds.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// The known numbers of which a known value is the least, by the nodes that it comes from, of which a few are
/// looked at.
std::vector<int64_t> least_of(const ir::Graph& graph, V id) {
  constexpr int kMostNodes = 64;
  constexpr std::array<std::string_view, 6> kMoves = {"identity", "cast",       "reshape",
                                                      "min",      "reduce_min", "concat"};
  std::vector<int64_t> numbers;
  std::vector<V> open{id};
  for (int visited = 0; !open.empty(); ++visited) {
    const ir::Value& value = graph.value(open.back());
    open.pop_back();
    const ir::Node* node = value.producer == ir::kAbsent ? nullptr : &graph.node(value.producer);
    const bool is_move = node != nullptr && std::find(kMoves.begin(), kMoves.end(), node->op) != kMoves.end();
    if (is_move && visited < kMostNodes) {
      open.insert(open.end(), node->inputs.begin(), node->inputs.end());
    } else if (value.known && !is_float(value.type.dtype)) {
      for (int64_t i = 0; i < value.known->num_elements(); ++i)
        numbers.push_back(value.known->element_as_int(i));
    }
  }
  return numbers;
}

}  // namespace

BoundedInt capped_int(NodeContext& context, size_t index, const char* what, int64_t extent) {
  const V value = context.input(index);
  const bool is_one = num_elements(context.type(value).shape) == 1 && !is_float(context.type(value).dtype);
  if (is_one && !context.is_computable(value) && !bounds_of(context, value, std::nullopt))
    return {extent, value, 0};
  const BoundedInt number = bounded_int(context, index, what);
  if (!context.is_sample() || !number.is_known()) return number;
  std::vector<int64_t> numbers = least_of(context.graph(), context.input(index));
  if (numbers.size() < 2 || std::find(numbers.begin(), numbers.end(), extent) == numbers.end()) return number;
  std::erase(numbers, extent);
  // A number that is the extent by chance is no other than that.
  const int64_t cap = numbers.empty() ? extent : *std::min_element(numbers.begin(), numbers.end());
  if (cap < 0 || cap > kMaxPadded) return number;
  return {cap, context.input(index), 0};
}

}  // namespace tensormill::frontend::onnx
