/// conv_integer: convolution of bytes with signed bytes, summed in int32.
#include "compiler/ops/map_layout.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/windows/conv.h"
#include "compiler/ops/windows/window.h"

namespace tensormill::ops::conv_integer_ops {

std::vector<ir::OpDef> family();

namespace {

int64_t read_zero(const ir::Attrs& attrs) {
  const int64_t zero = attr_int(attrs, "x_zero", 0);
  if (zero < 0 || zero > 255) fail("attribute x_zero is " + std::to_string(zero) + ", expected 0 to 255");
  return zero;
}

void expect_type(const ir::ValueType& type, size_t index, DType dtype) {
  if (type.dtype == dtype) return;
  fail("input " + std::to_string(index) + " has type " + std::string(dtype_name(type.dtype)) + ", expected " +
       std::string(dtype_name(dtype)));
}

/// The rule of conv on float64 operands of the same shapes.
std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  static_cast<void>(read_zero(context.attrs));
  expect_type(input(context, 0), 0, DType::kUInt8);
  expect_type(input(context, 1), 1, DType::kInt8);
  if (has_input(context, 2)) expect_type(input(context, 2), 2, DType::kInt32);
  std::vector<ir::ValueType> types;
  for (const ir::ValueType* type : context.inputs)
    types.push_back(type == nullptr ? ir::ValueType{} : ir::ValueType{DType::kFloat64, type->shape});
  ir::InferContext plain{context.attrs, {}};
  for (size_t i = 0; i < types.size(); ++i)
    plain.inputs.push_back(context.inputs[i] == nullptr ? nullptr : &types[i]);
  return {made_type(DType::kInt32, infer_conv(plain)[0].shape)};
}

Tensor as_doubles(const Tensor& from, double shift) {
  Tensor result(DType::kFloat64, from.shape());
  for (int64_t i = 0; i < from.num_elements(); ++i) result.set_element(i, from.element_as_double(i) - shift);
  return result;
}

void reference(const ir::ReferenceContext& context) {
  Tensor& out = *context.outputs[0];
  const bool biased = context.inputs.size() > 2 && context.inputs[2] != nullptr;
  const Tensor x = as_doubles(*context.inputs[0], static_cast<double>(read_zero(context.attrs)));
  const Tensor w = as_doubles(*context.inputs[1], 0);
  const Tensor bias = biased ? as_doubles(*context.inputs[2], 0) : Tensor(DType::kFloat64, Shape{});
  Tensor sums(DType::kFloat64, out.shape());
  conv_reference({context.attrs, {&x, &w, biased ? &bias : nullptr}, {&sums}});
  for (int64_t i = 0; i < out.num_elements(); ++i)
    out.set_element_int(i, static_cast<int32_t>(static_cast<int64_t>(sums.element_as_double(i))));
}

TeOutputs compute(const ir::ComputeContext& context) {
  const int64_t zero = read_zero(context.attrs);
  ir::ComputeContext wide = context;
  for (size_t i = 0; i < 2; ++i) {
    const ir::SymShape& shape = context.input_types[i].shape;
    const te::Tensor& from = context.inputs[i];
    wide.input_types[i].dtype = DType::kInt32;
    wide.inputs[i] = compute_safe(
        context.name + (i == 0 ? "_x" : "_w"), shape, DType::kInt32, [&](const std::vector<Expr>& axes) {
          const Expr value = te::cast(DType::kInt32, te::read(from, axes));
          return i == 0 && zero != 0 ? value - te::int_imm(DType::kInt32, zero) : value;
        });
  }
  return compute_conv(wide);
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "conv_integer";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  def.infer = &infer_of_map<&infer, MapWeights::kConv>;
  def.reference = &reference_of_map<&reference, MapWeights::kConv>;
  def.part = &part_of_map<&part_of_conv, MapWeights::kConv>;
  def.compute = &compute;
  def.doc =
      "inputs x (uint8), w (int8), bias (int32, optional) of conv's shapes: int32 sums of (x - x_zero) * w, "
      "plus bias; attributes as conv's, x_zero (int, 0)";
  return {def};
}

}  // namespace tensormill::ops::conv_integer_ops
