/// Quantized numbers as graphs have them: integers, dequantized in front of a real operator and quantized
/// behind it. The passes compute on the integers what can be (passes/quantized/quantized.h). Thread-safety:
/// as the builder.
#pragma once

#include "compiler/build/compose.h"

namespace tensormill::build {

/// The nearest whole number of any float type, ties away from zero.
ir::ValueId round_away(OpBuilder& builder, ir::ValueId x);
/// x - zero_point in `wide`, which holds the difference; `zero` may be kAbsent.
ir::ValueId centered(Compose& c, ir::ValueId x, ir::ValueId zero, DType wide);
/// (x - zero) * scale in float32; scale and zero broadcast to x, and zero may be kAbsent.
ir::ValueId dequantize(OpBuilder& builder, ir::ValueId x, ir::ValueId scale, ir::ValueId zero);
/// saturate(round(x / scale) + zero_point) as integers of type `to`, half to even; x and scale are of one
/// float type, and zero may be kAbsent.
ir::ValueId quantize(OpBuilder& builder, ir::ValueId x, ir::ValueId scale, ir::ValueId zero, DType to);

}  // namespace tensormill::build
