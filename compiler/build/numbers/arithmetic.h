/// Functions of numbers that are made of several operators of the graph. Operands broadcast; what is computed
/// with its channels first is left there. Errors: Error(kInvalidModel) for operands that do not fit.
/// Thread-safety: as the builder.
#pragma once

#include "compiler/build/maps/channels_last.h"

namespace tensormill::build {

/// The rest of x / y, of the divisor's sign, and the quotient rounded down.
ir::ValueId floor_mod(OpBuilder& builder, ChannelsLast& maps, ir::ValueId x, ir::ValueId y);
ir::ValueId floor_div(OpBuilder& builder, ChannelsLast& maps, ir::ValueId x, ir::ValueId y);
/// The angle of (x, y), of all four quadrants.
ir::ValueId atan2(OpBuilder& builder, ir::ValueId y, ir::ValueId x);
/// The length of (x, y), of one shape; no square of it is too large for the type.
ir::ValueId hypotenuse(OpBuilder& builder, ir::ValueId x, ir::ValueId y);

struct FakeQuantSpec {
  float min = 0, max = 0;
  int64_t bits = 8;
  bool narrow_range = false;
};
/// Rounded to the steps of a range, which is moved so that 0 is one of its numbers.
ir::ValueId fake_quant(OpBuilder& builder, ChannelsLast& maps, ir::ValueId x, const FakeQuantSpec& spec);

/// The same of a range that a run works out, `spec` but its min and max: these are f32 of no dims, or of the
/// last axis of x, which is f32 as well. Of a range from 0 to 0 everything is 0.
ir::ValueId fake_quant(OpBuilder& builder, ir::ValueId x, ir::ValueId min, ir::ValueId max,
                       const FakeQuantSpec& spec);

/// By 0 to width - 1 bits; the sign moves in from the left.
ir::ValueId right_shift(OpBuilder& builder, ir::ValueId x, ir::ValueId by);
/// By the width or more nothing is left. Both of one type.
ir::ValueId left_shift(OpBuilder& builder, ir::ValueId x, ir::ValueId by);
/// The same bits in another type: of a wider one a last axis has the parts, the low ones first; of a narrower
/// one it has been that.
ir::ValueId bitcast(OpBuilder& builder, ir::ValueId x, DType to);

}  // namespace tensormill::build
