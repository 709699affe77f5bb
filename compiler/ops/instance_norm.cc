/// instance_norm: normalization of each channel of each image by its own statistics.
#include <cmath>

#include "compiler/ops/channel_norm.h"
#include "compiler/ops/map_layout.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::instance_norm_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) { return channel_norm_type(context, 3, 2); }

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  if (x.num_elements() == 0) return;
  const AxisView view = view_axis(x.shape(), 1);
  const double epsilon = attr_float(context.attrs, "epsilon", 1e-5);
  const double count = static_cast<double>(view.inner);
  std::vector<double> values = to_doubles(x);
  for (int64_t row = 0; row < view.outer * view.extent; ++row) {
    double* begin = values.data() + row * view.inner;
    double* end = begin + view.inner;
    double mean = 0, variance = 0;
    for (const double* value = begin; value != end; ++value) mean += *value / count;
    for (const double* value = begin; value != end; ++value)
      variance += (*value - mean) * (*value - mean) / count;
    const double factor =
        context.inputs[1]->element_as_double(row % view.extent) / std::sqrt(variance + epsilon);
    const double shift = context.inputs[2]->element_as_double(row % view.extent);
    for (double* value = begin; value != end; ++value) *value = (*value - mean) * factor + shift;
  }
  store_doubles(*context.outputs[0], values);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const DType dtype = compute_dtype(out.dtype);
  const MapAxes map = map_axes(context.attrs, out.shape.size());
  const ir::SymShape rows = {out.shape[0], out.shape[map.channel]};
  const auto first = out.shape.begin() + static_cast<std::ptrdiff_t>(map.spatial);
  const ir::SymShape spatial(first, first + static_cast<std::ptrdiff_t>(out.shape.size() - 2));
  const Expr count = count_of(num_elements(spatial), dtype);
  const Expr epsilon = te::imm_like({dtype, 1}, attr_float(context.attrs, "epsilon", 1e-5));
  const auto value = [&](std::vector<Expr> row, const std::vector<Expr>& at) {
    row.insert(row.begin() + static_cast<std::ptrdiff_t>(map.spatial), at.begin(), at.end());
    return widen(te::read(context.inputs[0], row));
  };
  // Two passes: the mean of squares less the square of the mean would cancel.
  const te::Tensor sums =
      reduce_safe(context.name + "_sum", te::ReduceOp::kSum, rows, spatial, dtype,
                  [&](const std::vector<Expr>& row, const std::vector<Expr>& at) { return value(row, at); });
  const te::Tensor squares = reduce_safe(context.name + "_squares", te::ReduceOp::kSum, rows, spatial, dtype,
                                         [&](const std::vector<Expr>& row, const std::vector<Expr>& at) {
                                           const Expr difference =
                                               value(row, at) - te::read(sums, row) / count;
                                           return difference * difference;
                                         });
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const std::vector<Expr> row = {axes[0], axes[map.channel]};
    const Expr centred = widen(te::read(context.inputs[0], axes)) - te::read(sums, row) / count;
    const Expr deviation = te::make(te::ExprOp::kSqrt, {te::read(squares, row) / count + epsilon});
    const Expr scale = widen(te::read(context.inputs[1], {row[1]}));
    const Expr bias = widen(te::read(context.inputs[2], {row[1]}));
    return narrow(centred * (scale / deviation) + bias, out.dtype);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "instance_norm";
  def.min_inputs = 3;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  def.tolerance = 1e-4;
  def.infer = &infer_of_map<&infer>;
  def.reference = &reference_of_map<&reference>;
  def.compute = &compute;
  def.doc =
      "inputs x [N,C,spatial...], scale [C], bias [C]: each channel of each image less its mean, divided by "
      "sqrt(variance+epsilon), times scale plus bias; attributes epsilon (float, 1e-5), channels_last (bool, "
      "0: x [N,spatial...,C])";
  return {def};
}

}  // namespace tensormill::ops::instance_norm_ops
