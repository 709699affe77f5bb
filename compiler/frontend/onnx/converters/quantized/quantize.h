/// Arithmetic of the quantized operators. Thread-safety: pure functions of the context.
#pragma once

#include "compiler/build/numbers/quantize.h"
#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

using build::centered;

/// Zero points and scales of a matrix operand: of its rows (on the left) or columns (on the right).
ir::ValueId per_line(Compose& c, ir::ValueId value, bool rows);
/// saturate(round(x / scale) + zero_point); x and scale in a float type.
ir::ValueId quantized(NodeContext& context, ir::ValueId x, ir::ValueId scale, ir::ValueId zero, DType to);
/// (x - zero) * scale in float32, for one scale and zero point.
ir::ValueId dequantized(NodeContext& context, ir::ValueId x, ir::ValueId scale, ir::ValueId zero);

/// The int32 sums of a convolution of x - x_zero and w - w_zero, as float64, by kernels of float32; kAbsent
/// where these may not be exact: other than 8-bit data, weights that are not known or too large.
ir::ValueId exact_convolution(NodeContext& context, ir::ValueId x, ir::ValueId x_zero, ir::ValueId w,
                              ir::ValueId w_zero);

struct DynamicQuantized {
  ir::ValueId values, scale, zero;
};
/// uint8 with the scale and zero point of the range of x and 0.
DynamicQuantized dynamic_quantized(NodeContext& context, ir::ValueId x);

}  // namespace tensormill::frontend::onnx
