// Operators whose operands are strings.
#include "compiler/build/text/text_operands.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

constexpr Converter kMoves[] = {
    &convert_concatenation, &convert_pack,   &convert_unpack,        &convert_split,
    &convert_split_v,       &convert_slice,  &convert_strided_slice, &convert_gather,
    &convert_gather_nd,     &convert_tile,   &convert_transpose,     &convert_reverse,
    &convert_broadcast_to,  &convert_select, &convert_select_v2,     &convert_fill};
constexpr Converter kReshapes[] = {&convert_reshape, &convert_squeeze, &convert_expand_dims};
constexpr Converter kShapes[] = {&convert_shape, &convert_rank};
constexpr Converter kReads[] = {&convert_hashtable_find, &convert_hashtable_import,
                                &convert_read_variable,  &convert_assign_variable,
                                &convert_call_once,      &convert_if,
                                &convert_while};
constexpr build::TextConverters<Converter> kTexts = {kReads, kMoves, kReshapes, kShapes};

bool holds_text(const NodeContext& node) {
  for (size_t i = 0; i < node.num_inputs(); ++i)
    if (node.has_input(i) && node.input_tensor(i).type == TensorType::kString) return true;
  return false;
}

}  // namespace

void convert_node(NodeContext& node, Converter convert) {
  const build::TextUse use = kTexts.use_of(convert);
  if (use == build::TextUse::kReads || !holds_text(node)) return convert(node);
  if (node.op() == "EQUAL" || node.op() == "NOT_EQUAL") {
    const V same = build::equal_texts(node, node.stored(0), node.stored(1));
    return node.set_stored(0, node.op() == "EQUAL" ? same : Compose(node).unary("not", same));
  }
  std::vector<V> operands;
  for (size_t i = 0; i < node.num_inputs(); ++i)
    operands.push_back(node.has_input(i) ? node.stored(i) : ir::kAbsent);
  const auto numbers = [&](const std::vector<V>& of) { return node.converted_with(of, convert); };
  const std::vector<V> results = build::convert_texts(node, use, operands, numbers);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] != ir::kAbsent) node.set_stored(i, results[i]);
}

}  // namespace tensormill::frontend::tflite
