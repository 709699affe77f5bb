/// Integers that stand for the real numbers of a range: the least integer of their type for its low end, the
/// largest one for its high end. Both ends are float32, and a run may work them out. Computed in the steps
/// and the precision of TensorFlow's reference kernels (core/kernels/quantization_utils.h). Thread-safety: as
/// the context.
#pragma once

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

/// Its ends have no dims, or broadcast to the integers.
struct Range {
  V low = ir::kAbsent, high = ir::kAbsent;
};
/// Of operands `operand` and the next one, of one element each.
Range range_at(NodeContext& node, size_t operand);
Range range_at(NodeContext& node, size_t low, size_t high);
void set_range(NodeContext& node, size_t output, const Range& range);

/// The integers of a type: the least, the largest, how many there are. Error(kInvalidModel) for types of
/// other numbers.
struct Steps {
  double low = 0, high = 0, count = 0;
};
Steps steps_of(const NodeContext& node, DType dtype);

/// The real numbers, float32.
V real_numbers(NodeContext& node, V integers, const Range& range);
/// The real number of one integer, float32, worked out in float64 as the kernels do for single numbers: in
/// the float32 of tensors, steps of int32 are lost.
V real_number(NodeContext& node, V integer, const Range& range);
/// The integers of type `to` that are nearest to real numbers x, float32.
V nearest_integers(NodeContext& node, V x, const Range& range, DType to);
/// Which integer of a type a real number is, float64; one of the type, or where `is_any` is set any one.
V place_of(NodeContext& node, double number, const Range& range, DType type, bool is_any);
/// Integers less what 0 is, in `wide`.
V less_zero(NodeContext& node, V integers, const Range& range, DType wide);
/// The range of products of integers, of type int32.
Range range_of_products(NodeContext& node, const Range& a, DType a_type, const Range& b, DType b_type);

}  // namespace tensormill::frontend::tensorflow
