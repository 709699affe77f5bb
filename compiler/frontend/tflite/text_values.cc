// Operators whose operands are strings. What moves elements moves the numbers of strings, which are gathered
// from there; most others take no strings.
#include <algorithm>

#include "compiler/build/text.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

constexpr Converter kMoves[] = {
    &convert_concatenation, &convert_pack,   &convert_unpack,        &convert_split,
    &convert_split_v,       &convert_slice,  &convert_strided_slice, &convert_gather,
    &convert_gather_nd,     &convert_tile,   &convert_transpose,     &convert_reverse,
    &convert_broadcast_to,  &convert_select, &convert_select_v2,     &convert_fill};
/// As many strings in another shape.
constexpr Converter kReshapes[] = {&convert_reshape, &convert_squeeze, &convert_expand_dims};
constexpr Converter kShapes[] = {&convert_shape, &convert_rank};
/// What reads strings, or passes on whatever it is given.
constexpr Converter kTakeTexts[] = {&convert_hashtable_find, &convert_hashtable_import,
                                    &convert_read_variable,  &convert_assign_variable,
                                    &convert_call_once,      &convert_if,
                                    &convert_while};

template <size_t kCount>
bool holds(const Converter (&all)[kCount], Converter convert) {
  return std::find(std::begin(all), std::end(all), convert) != std::end(all);
}

bool holds_text(const NodeContext& node, size_t operand) {
  return node.has_input(operand) && node.input_tensor(operand).type == TensorType::kString;
}

/// What the operator makes of the numbers of strings; `take` gets each output.
template <typename Take>
void convert_numbers(NodeContext& node, Converter convert, const Take& take) {
  build::MovedTexts texts(node);
  std::vector<V> operands;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const V value = node.has_input(i) ? node.stored(i) : ir::kAbsent;
    const bool is_text = value != ir::kAbsent && build::is_text(node, value);
    // Their numbers would be those of all that there is room for.
    if (is_text && node.import_state().counted.contains(value))
      node.unsupported("operand " + std::to_string(i), "strings are as many as a run decides");
    operands.push_back(is_text ? texts.positions_of(value) : value);
  }
  const std::vector<V> results = node.converted_with(operands, convert);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] != ir::kAbsent) take(i, results[i], texts);
}

void compare_texts(NodeContext& node) {
  if (!holds_text(node, 0) || !holds_text(node, 1)) node.invalid("strings are compared with numbers");
  const auto [a, b] = build::broadcast_texts(node, node.stored(0), node.stored(1));
  const V same = node.add("equal_text", {a, b});
  node.set_stored(0, node.op() == "EQUAL" ? same : Compose(node).unary("not", same));
}

}  // namespace

void convert_node(NodeContext& node, Converter convert) {
  size_t operand = 0;
  while (operand < node.num_inputs() && !holds_text(node, operand)) ++operand;
  if (operand == node.num_inputs() || holds(kTakeTexts, convert)) return convert(node);
  if (node.op() == "EQUAL" || node.op() == "NOT_EQUAL") return compare_texts(node);
  if (holds(kShapes, convert))
    return convert_numbers(node, convert, [&](size_t i, V result, auto&) { node.set_stored(i, result); });
  if (holds(kReshapes, convert))
    return convert_numbers(node, convert, [&](size_t i, V moved, auto&) {
      node.set_stored(i, build::reshaped_text(node, node.stored(0), node.shape(moved)));
    });
  if (!holds(kMoves, convert))
    node.unsupported("operand " + std::to_string(operand), "strings are not implemented here");
  convert_numbers(node, convert, [&](size_t i, V moved, build::MovedTexts& texts) {
    node.set_stored(i, texts.texts_at(moved));
  });
}

}  // namespace tensormill::frontend::tflite
