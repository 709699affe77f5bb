/// bit_cast: the bits of each element as those of another type of the same width.
#include <cstring>

#include "compiler/ops/narrow_expr.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::bit_cast_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const DType to = attr_dtype(context.attrs, "to");
  if (x.dtype == kString || to == kString) fail("strings have no width");
  if (to == DType::kBool && x.dtype != to) fail("a byte may be no bool");
  if (value_bits(x.dtype) != value_bits(to)) {
    fail("elements of " + std::to_string(value_bits(x.dtype)) + " bits do not become " +
         std::string(dtype_name(to)));
  }
  return {made_type(to, x.shape)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  if (x.num_bytes() != 0) std::memcpy(out.data(), x.data(), x.num_bytes());
  // Below a byte, what the unused bits are is the type's own.
  for (int64_t i = 0; i < out.num_elements() && value_bits(out.dtype()) < 8; ++i) {
    uint8_t* byte = static_cast<uint8_t*>(out.data()) + i;
    if (is_float(out.dtype())) {
      *byte = static_cast<uint8_t>(*byte & ((1u << value_bits(out.dtype())) - 1u));
    } else {
      out.set_element_int(i, *byte);
    }
  }
}

Expr converted(const Expr& value, DType from, DType to) {
  if (from == to) return value;
  if (is_narrow_integer(to))
    return encode_narrow_expr(te::cast(DType::kInt32, value), to, true, PowerRounding::kUp);
  const DType stored = storage_dtype(to);
  if (value_bits(to) < 8) {
    const Expr low = te::make(te::ExprOp::kBitAnd, {te::cast(DType::kInt32, value),
                                                    te::int_imm(DType::kInt32, (1 << value_bits(to)) - 1)});
    return te::cast(stored, low);
  }
  // A conversion between integers of one width keeps the bits.
  const bool integers = !value->type.is_float() && !is_float(stored);
  return integers ? te::cast(stored, value) : te::reinterpret(stored, value);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& type = context.output_types[0];
  return {compute_safe(context.name, type.shape, type.dtype, [&](const std::vector<Expr>& axes) {
    return converted(te::read(context.inputs[0], axes), context.input_types[0].dtype, type.dtype);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "bit_cast";
  def.pattern = ir::Pattern::kElementwise;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "the bits of x as those of attribute to (dtype), a type of the same width; no bools of other types";
  return {def};
}

}  // namespace tensormill::ops::bit_cast_ops
