/// Dynamic operands: numbers that a run may work out. Thread-safety: as the context.
#pragma once

#include <vector>

#include "compiler/frontend/onnx/extents/bounds.h"

namespace tensormill::frontend::onnx {

/// Throws ValueRequired where data decides about extents of operand 0 in a way that is not statically known.
void require_known_extents(const NodeContext& context);
/// Operand `index`, a number, as [1] of its type; throws Error(kInvalidModel) where it is none.
ir::ValueId one_number(NodeContext& context, size_t index, const char* what);
/// The same as i64 [1], a float without its fraction.
ir::ValueId one_integer(NodeContext& context, size_t index, const char* what);
/// Operand `index`, of `number` numbers, as i64 [number]. Throws ValueRequired where data decides how many
/// they are.
ir::ValueId numbers_of(NodeContext& context, size_t index, int64_t number, const char* what);
/// Whether the operand is given, and its value is a run-time value: not known while the graph is built.
bool is_run_time_value(const NodeContext& context, size_t index);

/// The longest window, frame or transform.
inline constexpr int64_t kMaxLength = int64_t{1} << 20;
/// Operand `index`, a scalar that is known: a length within [0, kMaxLength]. Throws Error(kInvalidModel) for
/// another one.
int64_t known_length(NodeContext& context, size_t index, const char* what);

/// Whether low <= x <= high, for each element.
ir::ValueId is_within(NodeContext& context, ir::ValueId x, double low, double high);
/// How large something is that a run says by `number` (i64 [1]): a run fails in which it is not within
/// [least, limit]. A number that is known is not looked at. Throws ValueRequired as
/// NodeContext::symbolic_ints does.
ir::SymInt run_extent(NodeContext& context, ir::ValueId number, int64_t limit, const char* what,
                      int64_t least = 0);
/// Integers as i64: a run fails in which one of them is not within [0, most] (i64 [1]), and says so of
/// `what`. Those that are known, where `most` is, are looked at now.
ir::ValueId integers_within(NodeContext& context, ir::ValueId integers, ir::ValueId most, const char* what);
/// Where an element of a row of numbers stands: of what is concatenated, and then cast, in the part that it
/// is of, so that it may be known where others are a run's.
struct RowPart {
  ir::ValueId part = ir::kAbsent;
  int64_t at = 0;
  std::vector<DType> casts = {};  ///< of the element, the first one first
};
RowPart part_of_row(const NodeContext& context, ir::ValueId row, int64_t at);
/// How many elements of a row a run works out.
int64_t numbers_left_open(const NodeContext& context, ir::ValueId row);
/// Whether the shape of a Reshape is a run-time value as a whole: of several numbers a product is to be that
/// of the elements, and of no elements any one may be 0.
bool has_dynamic_shape(const NodeContext& context);
/// The element, as [1].
ir::ValueId row_element(NodeContext& context, ir::ValueId row, int64_t at);

}  // namespace tensormill::frontend::onnx
