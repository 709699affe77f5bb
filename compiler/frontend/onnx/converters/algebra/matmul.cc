#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

/// The axis over which a matrix product sums, and those before both, may be as long as data says.
ir::ValueId product_of(NodeContext& context, ir::ValueId a, ir::ValueId b, bool transpose_b) {
  const auto axis_of = [&](ir::ValueId x, int64_t from_end) {
    return std::max<int64_t>(context.rank(x) - from_end, 0);
  };
  const int64_t of_a = axis_of(a, 1), of_b = axis_of(b, transpose_b ? 1 : 2);
  std::vector<ir::ValueId> operands = dynamic_broadcast(context, {a, b}, 2);
  make_same(context, operands, {{0, of_a}, {1, of_b}});
  return Compose(context).matmul(filled_along(context, operands[0], of_a, "zero"),
                                 filled_along(context, operands[1], of_b, "zero"), transpose_b);
}

}  // namespace

void convert_matmul(NodeContext& context) {
  context.set_output(0, product_of(context, context.input(0), context.input(1), false));
}

void convert_gemm(NodeContext& context) { context.set_output(0, gemm(context)); }

// alpha * A' * B' + beta * C
ir::ValueId gemm(NodeContext& context) {
  ir::ValueId a = context.input(0);
  const ir::ValueId b = context.input(1);
  if (context.rank(a) != 2 || context.rank(b) != 2) {
    context.invalid("A has rank " + std::to_string(context.rank(a)) + " and B " +
                    std::to_string(context.rank(b)) + ", expected 2");
  }
  // Kernels read rows of A: its columns are moved once, where each block of results would gather them.
  if (context.int_attr("transA", 0) != 0) a = Compose(context).transpose(a, {1, 0});
  ir::ValueId result = product_of(context, a, b, context.int_attr("transB", 0) != 0);
  const double alpha = context.float_attr("alpha", 1.0);
  if (alpha != 1.0) result = context.add("mul", {result, context.scalar_like(result, alpha)});
  const double beta = context.float_attr("beta", 1.0);
  if (context.has_input(2) && beta != 0.0) {
    ir::ValueId c = context.input(2);
    if (beta != 1.0) c = context.add("mul", {c, context.scalar_like(c, beta)});
    const ir::SymShape expected = context.type(result).shape;
    result = context.add("add", {result, c});
    if (context.type(result).shape != expected) {
      context.invalid("C of shape " + to_string(context.type(c).shape) + " does not broadcast to " +
                      to_string(expected));
    }
  }
  return result;
}

}  // namespace tensormill::frontend::onnx
