#include "tests/schedule/programs.h"

#include <limits>

namespace tensormill::schedule_test {

using te::Expr;
using te::Tensor;

namespace {

Expr f32(double value) { return te::float_imm(DType::kFloat32, value); }

Tensor padded(const Tensor& x, int64_t pad, double value) {
  if (pad == 0) return x;
  Shape shape = x->constant_shape();
  const int64_t height = shape[2], width = shape[3];
  shape[2] += 2 * pad;
  shape[3] += 2 * pad;
  return te::compute("padded", shape, [&](const std::vector<Expr>& i) {
    const Expr y = i[2] - Expr(pad), z = i[3] - Expr(pad);
    const Expr inside = te::logical_and(te::logical_and(y >= Expr(0), y < Expr(height)),
                                        te::logical_and(z >= Expr(0), z < Expr(width)));
    const Expr row = te::min(te::max(y, Expr(0)), Expr(height - 1)),
               column = te::min(te::max(z, Expr(0)), Expr(width - 1));
    return te::select(inside, te::read(x, {i[0], i[1], row, column}), f32(value));
  });
}

}  // namespace

te::Program conv_program(const ConvShape& s, bool epilogue) {
  const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  const Tensor x = te::placeholder("x", DType::kFloat32, Shape{s.batch, s.in_channels, s.height, s.width});
  const Tensor w = te::placeholder("w", DType::kFloat32, Shape{s.out_channels, group_in, s.kernel, s.kernel});
  const Tensor bias = te::placeholder("bias", DType::kFloat32, Shape{s.out_channels});
  const Tensor source = padded(x, s.pad, 0);
  const Shape out = {s.batch, s.out_channels, (s.height + 2 * s.pad - s.kernel) / s.stride + 1,
                     (s.width + 2 * s.pad - s.kernel) / s.stride + 1};
  const Tensor conv = te::reduce(
      "conv", te::ReduceOp::kSum, out, {group_in, s.kernel, s.kernel},
      [&](const std::vector<Expr>& i, const std::vector<Expr>& r) {
        Expr channel = r[0];
        if (s.groups > 1) channel = te::floordiv(i[1], Expr(group_out)) * Expr(group_in) + r[0];
        return te::read(source, {i[0], channel, i[2] * Expr(s.stride) + r[1], i[3] * Expr(s.stride) + r[2]}) *
               te::read(w, {i[1], r[0], r[1], r[2]});
      });
  if (!epilogue) return {{x, w}, {conv}};
  const Tensor sum = te::compute(
      "sum", out, [&](const std::vector<Expr>& i) { return te::read(conv, i) + te::read(bias, {i[1]}); });
  const Tensor relu =
      te::compute("relu", out, [&](const std::vector<Expr>& i) { return te::max(te::read(sum, i), f32(0)); });
  return {{x, w, bias}, {relu}};
}

te::Program matmul_program(int64_t batch, int64_t m, int64_t n, int64_t k, bool transposed, bool bias) {
  const Tensor a = te::placeholder("a", DType::kFloat32, Shape{batch, m, k});
  const Tensor b =
      te::placeholder("b", DType::kFloat32, transposed ? Shape{batch, n, k} : Shape{batch, k, n});
  const Tensor c = te::placeholder("c", DType::kFloat32, Shape{n});
  const Tensor product = te::reduce(
      "product", te::ReduceOp::kSum, Shape{batch, m, n}, Shape{k},
      [&](const std::vector<Expr>& i, const std::vector<Expr>& r) {
        const Expr right = transposed ? te::read(b, {i[0], i[2], r[0]}) : te::read(b, {i[0], r[0], i[2]});
        return te::read(a, {i[0], i[1], r[0]}) * right;
      });
  if (!bias) return {{a, b}, {product}};
  const Tensor out = te::compute("out", Shape{batch, m, n}, [&](const std::vector<Expr>& i) {
    return te::read(product, i) + te::read(c, {i[2]});
  });
  return {{a, b, c}, {out}};
}

te::Program pool_program(const ConvShape& s, te::ReduceOp op) {
  const Tensor x = te::placeholder("x", DType::kFloat32, Shape{s.batch, s.in_channels, s.height, s.width});
  const Tensor source =
      padded(x, s.pad, op == te::ReduceOp::kMax ? -std::numeric_limits<double>::infinity() : 0);
  const Shape out = {s.batch, s.in_channels, (s.height + 2 * s.pad - s.kernel) / s.stride + 1,
                     (s.width + 2 * s.pad - s.kernel) / s.stride + 1};
  const Tensor pool = te::reduce(
      "pool", op, out, {s.kernel, s.kernel}, [&](const std::vector<Expr>& i, const std::vector<Expr>& r) {
        return te::read(source, {i[0], i[1], i[2] * Expr(s.stride) + r[0], i[3] * Expr(s.stride) + r[1]});
      });
  return {{x}, {pool}};
}

te::Program reduce_program(const Shape& shape, te::ReduceOp op, bool last, bool epilogue) {
  const Tensor x = te::placeholder("x", DType::kFloat32, shape);
  Shape out = shape;
  const size_t axis = last ? shape.size() - 1 : shape.size() - 2;
  out.erase(out.begin() + static_cast<ptrdiff_t>(axis));
  const Tensor total = te::reduce("total", op, out, Shape{shape[axis]},
                                  [&](const std::vector<Expr>& i, const std::vector<Expr>& r) {
                                    std::vector<Expr> index = i;
                                    index.insert(index.begin() + static_cast<ptrdiff_t>(axis), r[0]);
                                    return te::read(x, index);
                                  });
  if (!epilogue) return {{x}, {total}};
  return {{x}, {te::compute("out", out, [&](const std::vector<Expr>& i) {
            return te::read(total, i) * te::read(total, i);
          })}};
}

te::Program arg_max_program(const Shape& shape, bool last_axis) {
  const Tensor x = te::placeholder("x", DType::kFloat32, shape);
  const size_t axis = last_axis ? shape.size() - 1 : 0;
  Shape out = shape;
  out.erase(out.begin() + static_cast<ptrdiff_t>(axis));
  return {
      {x},
      {te::arg_reduce("best", true, false, out, shape[axis], [&](const std::vector<Expr>& i, const Expr& r) {
        std::vector<Expr> index = i;
        index.insert(index.begin() + static_cast<ptrdiff_t>(axis), r);
        return te::read(x, index);
      })}};
}

te::Program softmax_program(const Shape& shape) {
  const Tensor x = te::placeholder("x", DType::kFloat32, shape);
  const Shape rows(shape.begin(), shape.end() - 1);
  const auto at = [](const std::vector<Expr>& i, const Expr& last) {
    std::vector<Expr> index = i;
    index.push_back(last);
    return index;
  };
  const auto row = [](const std::vector<Expr>& i) { return std::vector<Expr>(i.begin(), i.end() - 1); };
  const Tensor largest = te::reduce("largest", te::ReduceOp::kMax, rows, Shape{shape.back()},
                                    [&](const auto& i, const auto& r) { return te::read(x, at(i, r[0])); });
  const Tensor power = te::compute("power", shape, [&](const std::vector<Expr>& i) {
    return te::make(te::ExprOp::kExp, {te::read(x, i) - te::read(largest, row(i))});
  });
  const Tensor total = te::reduce("total", te::ReduceOp::kSum, rows, Shape{shape.back()},
                                  [&](const auto& i, const auto& r) { return te::read(power, at(i, r[0])); });
  return {{x}, {te::compute("out", shape, [&](const std::vector<Expr>& i) {
            return te::read(power, i) / te::read(total, row(i));
          })}};
}

}  // namespace tensormill::schedule_test
