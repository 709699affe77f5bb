/// clip: values limited to a range.
#include <limits>

#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::clip_ops {

std::vector<ir::OpDef> family();

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& type = input_of(context, 0, kNumeric);
  for (size_t i = 1; i <= 2; ++i) {
    if (!has_input(context, i)) continue;
    const ir::ValueType& bound = input_like_first(context, i);
    if (num_elements(bound.shape) != 1) {
      fail("input " + std::to_string(i) + " has shape " + to_string(bound.shape) + ", expected 1 element");
    }
  }
  static_cast<void>(attr_float(context.attrs, "min", 0));
  static_cast<void>(attr_float(context.attrs, "max", 0));
  return {made_type(type.dtype, type.shape)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const auto given = [&](size_t i) { return i < context.inputs.size() && context.inputs[i] != nullptr; };
  if (is_float(x.dtype())) {
    const double low =
        given(1) ? context.inputs[1]->element_as_double(0) : attr_float(context.attrs, "min", -kInfinity);
    const double high =
        given(2) ? context.inputs[2]->element_as_double(0) : attr_float(context.attrs, "max", kInfinity);
    std::vector<double> values = to_doubles(x);
    for (double& value : values) {
      value = value < low ? low : value;
      value = value > high ? high : value;
    }
    store_doubles(*context.outputs[0], values);
    return;
  }
  const bool u = is_unsigned(x.dtype());
  const int64_t low = given(1) ? context.inputs[1]->element_as_int(0)
                               : saturate_to(x.dtype(), attr_float(context.attrs, "min", -kInfinity));
  const int64_t high = given(2) ? context.inputs[2]->element_as_int(0)
                                : saturate_to(x.dtype(), attr_float(context.attrs, "max", kInfinity));
  std::vector<int64_t> values = to_ints(x);
  for (int64_t& value : values) {
    value = int_less(value, low, u) ? low : value;
    value = int_less(high, value, u) ? high : value;
  }
  store_ints(*context.outputs[0], values);
}

/// The bound as an expression of x's (widened) type, or null when there is none.
Expr bound_expr(const ir::ComputeContext& context, size_t input, const std::string& attribute,
                const Expr& x) {
  if (input < context.inputs.size() && context.inputs[input] != nullptr) {
    const std::vector<Expr> zeros(context.input_types[input].shape.size(), Expr(0));
    return widen(te::read(context.inputs[input], zeros));
  }
  if (!context.attrs.has(attribute)) return {};
  const double value = attr_float(context.attrs, attribute, 0);
  const DType dtype = x->type.dtype;
  return is_float(dtype) ? te::float_imm(dtype, value) : te::int_imm(dtype, saturate_to(dtype, value));
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& type = context.output_types[0];
  return {compute_safe(context.name, type.shape, type.dtype, [&](const std::vector<Expr>& axes) {
    Expr value = widen(te::read(context.inputs[0], axes));
    const Expr low = bound_expr(context, 1, "min", value);
    const Expr high = bound_expr(context, 2, "max", value);
    if (low) value = te::select(value < low, low, value);
    if (high) value = te::select(value > high, high, value);
    return narrow(value, type.dtype);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "clip";
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kElementwise;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part_of_elementwise;
  def.compute = &compute;
  def.doc =
      "inputs x, min (optional, 1 element), max (optional, 1 element): x raised to min, then lowered to max; "
      "NaN passes. Attributes min, max (float, none) stand for operands that are not given";
  return {def};
}

}  // namespace tensormill::ops::clip_ops
