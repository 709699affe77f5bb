#include "compiler/build/text/text_operands.h"

namespace tensormill::build {

using V = ir::ValueId;

size_t first_text(const OpBuilder& builder, const std::vector<V>& operands) {
  const auto found = std::find_if(operands.begin(), operands.end(), [&](V operand) {
    return operand != ir::kAbsent && is_text(builder, operand);
  });
  return static_cast<size_t>(found - operands.begin());
}

std::vector<V> convert_texts(OpBuilder& builder, TextUse use, const std::vector<V>& operands,
                             const OperandConverter& convert) {
  if (use == TextUse::kReads) return convert(operands);
  if (use == TextUse::kRefuses)
    builder.unsupported("operand " + std::to_string(first_text(builder, operands)),
                        "strings are not implemented here");
  MovedTexts texts(builder);
  std::vector<V> numbers = operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == ir::kAbsent || !is_text(builder, operands[i])) continue;
    numbers[i] = texts.positions_of(operands[i]);
  }
  std::vector<V> results = convert(numbers);
  for (V& result : results) {
    if (result == ir::kAbsent || use == TextUse::kAsksOfShape) continue;
    result = use == TextUse::kMoves ? texts.texts_at(result)
                                    : reshaped_text(builder, operands[0], builder.type(result).shape);
  }
  return results;
}

V equal_texts(OpBuilder& builder, V a, V b) {
  if (!is_text(builder, a) || !is_text(builder, b)) builder.invalid("strings are compared with numbers");
  const auto [first, second] = broadcast_texts(builder, a, b);
  return builder.add("equal_text", {first, second});
}

}  // namespace tensormill::build
