/// batch_norm: normalization by given statistics per channel (inference).
#include <cmath>

#include "compiler/ops/channel_norm.h"
#include "compiler/ops/map_layout.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::batch_norm_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) { return channel_norm_type(context, 2, 4); }

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const AxisView view = view_axis(x.shape(), 1);
  const double epsilon = attr_float(context.attrs, "epsilon", 1e-5);
  std::vector<double> values = to_doubles(x);
  for (int64_t row = 0; row < view.outer * view.extent; ++row) {
    const int64_t c = row % view.extent;
    const auto parameter = [&](size_t i) { return context.inputs[i]->element_as_double(c); };
    const double factor = parameter(1) / std::sqrt(parameter(4) + epsilon);
    const double shift = parameter(2), mean = parameter(3);
    for (int64_t i = row * view.inner; i < (row + 1) * view.inner; ++i) {
      double& value = values[static_cast<size_t>(i)];
      value = (value - mean) * factor + shift;
    }
  }
  store_doubles(*context.outputs[0], values);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const double epsilon = attr_float(context.attrs, "epsilon", 1e-5);
  const size_t channel = map_axes(context.attrs, out.shape.size()).channel;
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const auto parameter = [&](size_t i) { return widen(te::read(context.inputs[i], {axes[channel]})); };
    const Expr variance = parameter(4);
    const Expr deviation = te::make(te::ExprOp::kSqrt, {variance + constant_like(variance, epsilon)});
    const Expr centred = widen(te::read(context.inputs[0], axes)) - parameter(3);
    return narrow(centred * (parameter(1) / deviation) + parameter(2), out.dtype);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "batch_norm";
  def.min_inputs = 5;
  def.max_inputs = 5;
  def.pattern = ir::Pattern::kElementwise;
  def.tolerance = 1e-5;
  def.infer = &infer_of_map<&infer>;
  def.reference = &reference_of_map<&reference>;
  def.compute = &compute;
  def.doc =
      "inputs x [N,C,...], scale [C], bias [C], mean [C], variance [C]: (x-mean) * "
      "(scale/sqrt(variance+epsilon)) + "
      "bias; attributes epsilon (float, 1e-5), channels_last (bool, 0: x [N,...,C])";
  return {def};
}

}  // namespace tensormill::ops::batch_norm_ops
