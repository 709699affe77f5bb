/// Operands of one number, which a run may work out. Thread-safety: as the context.
#pragma once

#include "compiler/frontend/onnx/bounds.h"

namespace tensormill::frontend::onnx {

/// Operand `index`, a number, as [1] of its type; throws Error(kInvalidModel) where it is none.
ir::ValueId one_number(NodeContext& context, size_t index, const char* what);
/// The same as i64 [1], a float without its fraction.
ir::ValueId one_integer(NodeContext& context, size_t index, const char* what);
/// Whether the operand is given and its value is one of the run.
bool is_of_run(const NodeContext& context, size_t index);

/// Whether low <= x <= high, for each element.
ir::ValueId is_within(NodeContext& context, ir::ValueId x, double low, double high);
/// How large something is that a run says by `number` (i64 [1]); a run in which nothing else bounds it and it
/// is not within [0, limit] fails. Throws ValueRequired as bounded_value does.
BoundedInt bounded_count(NodeContext& context, ir::ValueId number, int64_t limit, const char* what);
/// Element `at` of a row of numbers, as [1]: of what is concatenated, from the part that it is of, so that it
/// may be known where others are a run's.
ir::ValueId row_element(NodeContext& context, ir::ValueId row, int64_t at);

}  // namespace tensormill::frontend::onnx
