/// softmax, log_softmax along one axis.
#include <cmath>
#include <limits>

#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::softmax_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kFloats);
  static_cast<void>(normal_axis(attr_int(context.attrs, "axis", -1), x.shape.size()));
  static_cast<void>(attr_bool(context.attrs, "weights", false));
  return {made_type(x.dtype, x.shape)};
}

template <bool logarithm>
void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const AxisView view =
      view_axis(x.shape(), normal_axis(attr_int(context.attrs, "axis", -1), x.shape().size()));
  std::vector<double> values = to_doubles(x);
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t inner = 0; inner < view.inner; ++inner) {
      const auto at = [&](int64_t k) -> double& {
        return values[static_cast<size_t>((outer * view.extent + k) * view.inner + inner)];
      };
      double most = -std::numeric_limits<double>::infinity();
      for (int64_t k = 0; k < view.extent; ++k) most = max_double(most, at(k));
      double sum = 0;
      for (int64_t k = 0; k < view.extent; ++k) sum += std::exp(at(k) - most);
      for (int64_t k = 0; k < view.extent; ++k) {
        at(k) = logarithm ? at(k) - most - std::log(sum) : std::exp(at(k) - most) / sum;
      }
    }
  }
  store_doubles(*context.outputs[0], values);
}

bool part(ir::PartContext& context) {
  return part_beside_axis(context,
                          normal_axis(attr_int(context.attrs, "axis", -1), context.output.shape.size()));
}

/// Four stages: the maximum and the sum of a row, the shifted exponentials, the quotient.
template <bool logarithm>
TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", -1), out.shape.size());
  const DType dtype = compute_dtype(out.dtype);
  const std::string& name = context.name;
  ir::SymShape rows = out.shape;
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(axis));
  const auto inserted = [axis](std::vector<Expr> index, const Expr& k) {
    index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), k);
    return index;
  };
  const auto row_of = [axis](std::vector<Expr> index) {
    index.erase(index.begin() + static_cast<std::ptrdiff_t>(axis));
    return index;
  };
  const auto value = [&](const std::vector<Expr>& index) {
    return widen(te::read(context.inputs[0], index));
  };
  const ir::SymShape extent = {out.shape[axis]};
  const bool weights = attr_bool(context.attrs, "weights", false);
  const te::Tensor most = reduce_safe(
      name + "_max", te::ReduceOp::kMax, rows, extent, dtype,
      [&](const std::vector<Expr>& row, const std::vector<Expr>& k) { return value(inserted(row, k[0])); });
  const te::Tensor shifted =
      compute_safe(name + "_exp", out.shape, dtype, [&](const std::vector<Expr>& axes) {
        const Expr difference = value(axes) - te::read(most, row_of(axes));
        return weights ? weight_exp(difference) : te::make(te::ExprOp::kExp, {difference});
      });
  const te::Tensor sums = reduce_safe(name + "_sum", te::ReduceOp::kSum, rows, extent, dtype,
                                      [&](const std::vector<Expr>& row, const std::vector<Expr>& k) {
                                        return te::read(shifted, inserted(row, k[0]));
                                      });
  return {compute_safe(name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const Expr sum = te::read(sums, row_of(axes));
    // One division a row: the inverse does not depend on the last axis.
    if (!logarithm) return narrow(te::read(shifted, axes) * (constant_like(sum, 1) / sum), out.dtype);
    const Expr difference = value(axes) - te::read(most, row_of(axes));
    return narrow(difference - te::make(te::ExprOp::kLog, {sum}), out.dtype);
  })};
}

template <bool logarithm>
ir::OpDef define(std::string_view name, std::string_view doc) {
  ir::OpDef def;
  def.name = name;
  def.pattern = ir::Pattern::kComplex;
  def.tolerance = 1e-5;
  def.infer = &infer;
  def.reference = &reference<logarithm>;
  def.part = &part;
  def.compute = &compute<logarithm>;
  def.doc = doc;
  return def;
}

}  // namespace

std::vector<ir::OpDef> family() {
  return {
      define<false>("softmax",
                    "e^(x-m) / sum of e^(x-m) along attribute axis (int, -1), m the largest value; attribute "
                    "weights (bool, 0): what is no normal number may be zero"),
      define<true>("log_softmax", "log of softmax along attribute axis (int, -1)")};
}

}  // namespace tensormill::ops::softmax_ops
