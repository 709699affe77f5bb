// Operands that are lists of a free length, which the node's other operands have it.
#include <string_view>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

namespace {

enum class ListLength : uint8_t {
  kRank,        ///< an element for each axis of operand 0
  kAxes,        ///< for each of the attribute `axes`, or, without that, of operand 0
  kPads,        ///< two for each of the axes that operand 3 names, or, without that, of operand 0
  kPaddedAxes,  ///< one for every two of operand 1
  kParts,       ///< as many as the others of such operands have
  kBlocks,      ///< the same
  kGrid,        ///< those of a batch of pictures for which operand 0 has a matrix each
  kOutputs,     ///< an element for each output
  kTwo
};

struct ListOperand {
  std::string_view op;
  int64_t since, until;  ///< opsets
  size_t index;
  ListLength length;
};

using enum ListLength;
constexpr ListOperand kListOperands[] = {
#define TM_LIST_OPERAND(op, since, until, index, length) {op, since, until, index, length},
#include "compiler/frontend/onnx/operators/list_operands.def"
#undef TM_LIST_OPERAND
};

/// Of a list; nothing of what is none, or is not given.
std::optional<ir::SymInt> own_length(const NodeContext& context, size_t index) {
  if (!context.has_input(index)) return std::nullopt;
  const ir::SymShape& shape = context.type(context.input(index)).shape;
  return shape.size() == 1 ? std::optional(shape[0]) : std::nullopt;
}

std::optional<ir::SymInt> known_length_of_others(const NodeContext& context, const ListOperand& list) {
  for (const ListOperand& other : kListOperands) {
    if (other.op != list.op || other.length != list.length || other.index == list.index) continue;
    const std::optional<ir::SymInt> length = own_length(context, other.index);
    if (length && length->is_constant()) return length;
  }
  return std::nullopt;
}

/// As the node has it; nothing where that does not say it.
std::optional<ir::SymInt> length_of(const NodeContext& context, const ListOperand& list) {
  const ir::SymShape& own = context.type(context.input(0)).shape;
  switch (list.length) {
    case kRank:
      return own.size();
    case kAxes:
      return context.has_attr("axes") ? context.ints_attr("axes", {}).size() : own.size();
    case kPads: {
      if (!context.has_input(3)) return 2 * own.size();
      const std::optional<ir::SymInt> axes = own_length(context, 3);
      return axes ? std::optional(*axes * 2) : std::nullopt;
    }
    case kPaddedAxes: {
      const std::optional<ir::SymInt> pads = own_length(context, 1);
      return pads ? std::optional(floordiv(*pads, 2)) : std::nullopt;
    }
    case kParts:
    case kBlocks:
      return known_length_of_others(context, list);
    case kGrid:
      return own.size() == 3 && own[1].is_constant() ? std::optional(own[1] + 2) : std::nullopt;
    case kOutputs:
      return context.num_outputs();
    case kTwo:
      return 2;
  }
  return std::nullopt;
}

}  // namespace

void NodeContext::bind_list_lengths() {
  if (graph().symbols() == nullptr || !node_.domain.empty()) return;
  for (const ListOperand& list : kListOperands) {
    // Of Resize without sizes alone, which may be empty beside them.
    const bool is_none = list.op != node_.op_type || opset() < list.since || opset() > list.until ||
                         (list.op == "Resize" && list.index == 2 && has_input(3));
    const std::optional<ir::SymInt> own = is_none ? std::nullopt : own_length(*this, list.index);
    if (!own || own->is_constant()) continue;
    const std::optional<ir::SymInt> length = length_of(*this, list);
    if (!length || !length->is_constant()) continue;
    if (!ir::demand(ir::Relation::kEqual, *own, *length))
      invalid("operand " + std::to_string(list.index) + " has " + to_string(*own) + " elements, expected " +
              to_string(*length));
    ir::ValueId& value = inputs_[list.index];
    value = Compose(*this).reshape(value, {*length});
  }
}

}  // namespace tensormill::frontend::onnx
