/// cast: conversion of the element type.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops {

std::vector<ir::OpDef> cast_ops();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  return {made_type(attr_dtype(context.attrs, "to"), input(context, 0).shape)};
}

/// An integer as the nearest value of a float dtype.
void store_int_as_float(Tensor& out, int64_t index, int64_t value, bool u) {
  if (out.dtype() == DType::kFloat64) {
    out.set_element(index,
                    u ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value));
  } else {
    // Directly to float: a detour through double would round twice.
    out.set_element(index, u ? static_cast<float>(static_cast<uint64_t>(value)) : static_cast<float>(value));
  }
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  const bool to_float = is_float(out.dtype());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (is_float(x.dtype())) {
      const double value = x.element_as_double(i);
      if (to_float) {
        out.set_element(i, value);
      } else if (out.dtype() == DType::kBool) {
        out.set_element_int(i, value != 0 ? 1 : 0);
      } else {
        out.set_element_int(i, saturate_to(out.dtype(), value));
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
  return {compute_safe(context.name, type.shape, type.dtype, [&](const std::vector<Expr>& axes) {
    return narrow(te::read(context.inputs[0], axes), type.dtype);
  })};
}

}  // namespace

std::vector<ir::OpDef> cast_ops() {
  ir::OpDef def;
  def.name = "cast";
  def.pattern = ir::Pattern::kElementwise;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "x converted to the dtype of attribute to (dtype): floats to integers truncate and saturate, NaN gives "
      "0; "
      "integers narrow by wrapping; to float rounds half to even; to bool is x != 0";
  return {def};
}

}  // namespace tensormill::ops
