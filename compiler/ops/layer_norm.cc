/// layer_norm: normalization over the last axes (Ba, Kiros, Hinton, "Layer Normalization", 2016).
#include <cmath>

#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::layer_norm_ops {

std::vector<ir::OpDef> family();

namespace {

size_t first_axis(const ir::Attrs& attrs, size_t rank) {
  return normal_axis(attr_int(attrs, "axis", -1), rank);
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kFloats);
  const size_t axis = first_axis(context.attrs, x.shape.size());
  const ir::SymShape normalized(x.shape.begin() + static_cast<std::ptrdiff_t>(axis), x.shape.end());
  for (size_t i = 1; i <= 2; ++i) {
    if (!has_input(context, i)) continue;
    const ir::ValueType& row = input_like_first(context, i);
    if (!demand_equal(row.shape, normalized)) {
      fail("input " + std::to_string(i) + " has shape " + to_string(row.shape) + ", expected " +
           to_string(normalized));
    }
  }
  static_cast<void>(attr_float(context.attrs, "epsilon", 1e-5));
  return {made_type(x.dtype, x.shape)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  if (x.num_elements() == 0) return;
  const AxisView view = view_axis(x.shape(), first_axis(context.attrs, x.shape().size()));
  const int64_t length = view.extent * view.inner;
  const double epsilon = attr_float(context.attrs, "epsilon", 1e-5);
  const auto operand = [&](size_t i, int64_t at, double fallback) {
    const bool given = context.inputs.size() > i && context.inputs[i] != nullptr;
    return given ? context.inputs[i]->element_as_double(at) : fallback;
  };
  std::vector<double> values = to_doubles(x);
  for (int64_t row = 0; row < view.outer; ++row) {
    double* const begin = values.data() + row * length;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < length; ++i) mean += begin[i] / static_cast<double>(length);
    for (int64_t i = 0; i < length; ++i) {
      variance += (begin[i] - mean) * (begin[i] - mean) / static_cast<double>(length);
    }
    const double factor = 1 / std::sqrt(variance + epsilon);
    for (int64_t i = 0; i < length; ++i) {
      begin[i] = (begin[i] - mean) * factor * operand(1, i, 1) + operand(2, i, 0);
    }
  }
  store_doubles(*context.outputs[0], values);
}

/// Two passes: the mean of squares less the square of the mean would cancel.
TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const DType dtype = compute_dtype(out.dtype);
  const auto axis = static_cast<std::ptrdiff_t>(first_axis(context.attrs, out.shape.size()));
  const ir::SymShape rows(out.shape.begin(), out.shape.begin() + axis);
  const ir::SymShape normalized(out.shape.begin() + axis, out.shape.end());
  const Expr share = share_of(num_elements(normalized), dtype);
  const Expr epsilon = te::imm_like({dtype, 1}, attr_float(context.attrs, "epsilon", 1e-5));
  const auto value = [&](std::vector<Expr> row, const std::vector<Expr>& at) {
    row.insert(row.end(), at.begin(), at.end());
    return widen(te::read(context.inputs[0], row));
  };
  const te::Tensor sums =
      reduce_safe(context.name + "_sum", te::ReduceOp::kSum, rows, normalized, dtype,
                  [&](const std::vector<Expr>& row, const std::vector<Expr>& at) { return value(row, at); });
  const te::Tensor squares =
      reduce_safe(context.name + "_squares", te::ReduceOp::kSum, rows, normalized, dtype,
                  [&](const std::vector<Expr>& row, const std::vector<Expr>& at) {
                    const Expr difference = value(row, at) - te::read(sums, row) * share;
                    return difference * difference;
                  });
  const auto given = [&](size_t i) { return context.inputs.size() > i && context.inputs[i] != nullptr; };
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const std::vector<Expr> row(axes.begin(), axes.begin() + axis), at(axes.begin() + axis, axes.end());
    const Expr deviation = te::make(te::ExprOp::kSqrt, {te::read(squares, row) * share + epsilon});
    Expr result = (value(row, at) - te::read(sums, row) * share) * (te::imm_like({dtype, 1}, 1) / deviation);
    if (given(1)) result = result * widen(te::read(context.inputs[1], at));
    if (given(2)) result = result + widen(te::read(context.inputs[2], at));
    return narrow(result, out.dtype);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "layer_norm";
  def.min_inputs = 1;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  def.tolerance = 1e-4;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "x less its mean over the axes from attribute axis (int, -1) on, divided by sqrt(variance+epsilon), "
      "times scale plus bias where given (of the shape of these axes); attribute epsilon (float, 1e-5)";
  return {def};
}

}  // namespace tensormill::ops::layer_norm_ops
