/// cast: conversion of the element type.
#include <cmath>

#include "compiler/ops/narrow_expr.h"
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"
#include "runtime/base/round_to_odd.h"

namespace tensormill::ops::cast_ops {

std::vector<ir::OpDef> family();

namespace {

PowerRounding rounding_of(const ir::Attrs& attrs) {
  const std::string mode = attr_string(attrs, "round_mode", "up");
  if (mode == "up") return PowerRounding::kUp;
  if (mode == "down") return PowerRounding::kDown;
  if (mode == "nearest") return PowerRounding::kNearest;
  fail("attribute round_mode is \"" + mode + "\", expected up, down or nearest");
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  static_cast<void>(attr_bool(context.attrs, "saturate", true));
  static_cast<void>(rounding_of(context.attrs));
  const DType from = input(context, 0).dtype, to = attr_dtype(context.attrs, "to");
  if (from == kString || to == kString) fail("strings are not cast");
  return {made_type(to, input(context, 0).shape)};
}

/// An integer as the nearest value of a float dtype.
void store_int_as_float(Tensor& out, int64_t index, int64_t value, bool u) {
  if (out.dtype() == DType::kFloat64) {
    out.set_element(index,
                    u ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value));
  } else if (out.dtype() == DType::kFloat32) {
    // Directly: a detour through double would round twice.
    out.set_element(index, u ? static_cast<float>(static_cast<uint64_t>(value)) : static_cast<float>(value));
  } else {
    out.set_element(index, static_cast<double>(rounded_to_odd(value, !u)));
  }
}

void store_narrow_floats(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  const bool saturate = attr_bool(context.attrs, "saturate", true);
  const PowerRounding rounding = rounding_of(context.attrs);
  uint8_t* target = static_cast<uint8_t*>(out.data());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const double value =
        is_float(x.dtype())
            ? x.element_as_double(i)
            : static_cast<double>(rounded_to_odd(x.element_as_int(i), !is_unsigned(x.dtype())));
    target[i] = encode_narrow(out.dtype(), value, saturate, rounding);
  }
}

int64_t integer_of(DType to, double value) {
  // Four or two bits: the nearest integer's lowest.
  if (is_narrow(to)) return saturate_to(DType::kInt32, std::nearbyint(value));
  return saturate_to(to, value);
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  const bool to_float = is_float(out.dtype());
  if (to_float && is_narrow(out.dtype())) return store_narrow_floats(context);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (is_float(x.dtype())) {
      const double value = x.element_as_double(i);
      if (to_float) {
        out.set_element(i, value);
      } else if (out.dtype() == DType::kBool) {
        out.set_element_int(i, value != 0 ? 1 : 0);
      } else {
        out.set_element_int(i, integer_of(out.dtype(), value));
      }
    } else if (to_float) {
      store_int_as_float(out, i, x.element_as_int(i), is_unsigned(x.dtype()));
    } else {
      out.set_element_int(i, x.element_as_int(i));
    }
  }
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& type = context.output_types[0];
  const DType from = context.input_types[0].dtype;
  return {compute_safe(context.name, type.shape, type.dtype, [&](const std::vector<Expr>& axes) {
    Expr value = te::read(context.inputs[0], axes);
    if (is_narrow(from)) value = decode_narrow_expr(value, from);
    if (!is_narrow(type.dtype)) return narrow(value, type.dtype);
    return encode_narrow_expr(value, type.dtype, attr_bool(context.attrs, "saturate", true),
                              rounding_of(context.attrs));
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "cast";
  def.pattern = ir::Pattern::kElementwise;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part_of_elementwise;
  def.compute = &compute;
  def.doc =
      "x converted to the dtype of attribute to (dtype): floats to integers truncate and saturate, NaN gives "
      "0; integers narrow by wrapping; to float rounds half to even; to bool is x != 0; floats to i4 and u4 "
      "round half to even and wrap. attributes saturate (bool, true: what float8 cannot hold becomes its "
      "largest value), round_mode (string: up, down, nearest; up: to f8e8m0)";
  return {def};
}

}  // namespace tensormill::ops::cast_ops
