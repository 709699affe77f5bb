/// Programs of each structure that a template is for, as the operators write them, for any extents.
#pragma once

#include "compiler/te/tensor_expr.h"

namespace tensormill::schedule_test {

struct ConvShape {
  int64_t batch, in_channels, height, width, out_channels, kernel, stride, pad, groups;
};
/// x, w, bias -> relu(conv(x, w) + bias); the padded copy is a stage of its own.
te::Program conv_program(const ConvShape& shape, bool epilogue);
/// a[b, m, k] x b[b, k, n] (or [b, n, k] transposed), with a bias over n when asked for.
te::Program matmul_program(int64_t batch, int64_t m, int64_t n, int64_t k, bool transposed, bool bias);
/// Maximum or sum over kernel x kernel windows with padding.
te::Program pool_program(const ConvShape& shape, te::ReduceOp op);
/// Reduction of the last axis, or of the axis before it, with a following square.
te::Program reduce_program(const Shape& shape, te::ReduceOp op, bool last, bool epilogue);
te::Program arg_max_program(const Shape& shape, bool last_axis);
te::Program softmax_program(const Shape& shape);

}  // namespace tensormill::schedule_test
