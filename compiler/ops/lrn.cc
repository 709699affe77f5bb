/// lrn: local response normalization across channels (Krizhevsky et al., 2012).
#include <algorithm>
#include <cmath>

#include "compiler/ops/map_layout.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::lrn_ops {

std::vector<ir::OpDef> family();

namespace {

struct Parameters {
  int64_t size;
  double alpha, beta, bias;
  int64_t before() const { return (size - 1) / 2; }
};

Parameters read_parameters(const ir::Attrs& attrs) {
  return {attr_int(attrs, "size"), attr_float(attrs, "alpha", 1e-4), attr_float(attrs, "beta", 0.75),
          attr_float(attrs, "bias", 1)};
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kFloats);
  if (x.shape.size() < 2) {
    fail("input 0 has rank " + std::to_string(x.shape.size()) + ", expected at least 2");
  }
  const Parameters parameters = read_parameters(context.attrs);
  if (parameters.size < 1 || parameters.size > kMaxTensorBytes) {
    fail("attribute size is " + std::to_string(parameters.size) + ", expected 1 to " +
         std::to_string(kMaxTensorBytes));
  }
  return {made_type(x.dtype, x.shape)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  if (x.num_elements() == 0) return;
  const Parameters p = read_parameters(context.attrs);
  const AxisView view = view_axis(x.shape(), 1);
  const std::vector<double> xs = to_doubles(x);
  std::vector<double> values(xs.size());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const int64_t c = i / view.inner % view.extent;
    const int64_t first = std::max<int64_t>(c - p.before(), 0);
    const int64_t end = std::min<int64_t>(c - p.before() + p.size, view.extent);
    double squares = 0;
    for (int64_t k = first; k < end; ++k) {
      const double value = xs[static_cast<size_t>(i + (k - c) * view.inner)];
      squares += value * value;
    }
    const double base = p.bias + p.alpha / static_cast<double>(p.size) * squares;
    values[static_cast<size_t>(i)] = xs[static_cast<size_t>(i)] / std::pow(base, p.beta);
  }
  store_doubles(*context.outputs[0], values);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const Parameters p = read_parameters(context.attrs);
  const DType dtype = compute_dtype(out.dtype);
  const size_t channels = map_axes(context.attrs, out.shape.size()).channel;
  const te::Tensor squares = reduce_safe(
      context.name + "_squares", te::ReduceOp::kSum, out.shape, {p.size}, dtype,
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& k) {
        const Expr channel = axes[channels] + k[0] - Expr(p.before());
        const Expr value = widen(
            te::read(context.inputs[0], replaced(axes, channels, clamp_index(channel, out.shape[channels]))));
        return te::select(in_range(channel, out.shape[channels]), value * value, constant_like(value, 0));
      });
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const Expr x = widen(te::read(context.inputs[0], axes));
    const Expr base = constant_like(x, p.bias) +
                      constant_like(x, p.alpha / static_cast<double>(p.size)) * te::read(squares, axes);
    return narrow(x / te::make(te::ExprOp::kPow, {base, constant_like(x, p.beta)}), out.dtype);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "lrn";
  def.pattern = ir::Pattern::kComplex;
  def.tolerance = 1e-5;
  def.infer = &infer_of_map<&infer>;
  def.reference = &reference_of_map<&reference>;
  def.compute = &compute;
  def.doc =
      "x [N,C,...] / (bias + alpha/size * sum of squares of the channels c-(size-1)/2 .. c+size/2) ^ beta; "
      "attributes size (int, required), alpha (float, 1e-4), beta (float, 0.75), bias (float, 1), "
      "channels_last (bool, 0: x [N,...,C])";
  return {def};
}

}  // namespace tensormill::ops::lrn_ops
