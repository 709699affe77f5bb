/// where: choice between two tensors, element by element.
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::where_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& condition = input_of(context, 0, kBools);
  const ir::ValueType& x = input(context, 1);
  const ir::ValueType& y = input(context, 2);
  if (x.dtype != y.dtype) {
    fail("input 2 has dtype " + std::string(dtype_name(y.dtype)) + ", input 1 has " +
         std::string(dtype_name(x.dtype)));
  }
  return {made_type(x.dtype, broadcast_checked(condition.shape, broadcast_checked(x.shape, y.shape)))};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& condition = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  std::array<Shape, 3> strides;
  for (size_t i = 0; i < 3; ++i) strides[i] = broadcast_strides(context.inputs[i]->shape(), out.shape());
  for_each_strided<3>(out.shape(), strides, [&](int64_t position, const std::array<int64_t, 3>& from) {
    const size_t chosen = condition.element_as_int(from[0]) != 0 ? 1 : 2;
    copy_element(*context.inputs[chosen], from[chosen], out, position);
  });
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& type = context.output_types[0];
  return {compute_safe(context.name, type.shape, type.dtype, [&](const std::vector<Expr>& axes) {
    std::array<Expr, 3> operands;
    for (size_t i = 0; i < 3; ++i) {
      operands[i] = read_broadcast(context.inputs[i], context.input_types[i].shape, type.shape, axes);
    }
    return te::select(operands[0], operands[1], operands[2]);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "where";
  def.min_inputs = 3;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kElementwise;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part_of_elementwise;
  def.compute = &compute;
  def.doc = "inputs condition (bool), x, y: x where condition holds, else y; numpy broadcasting of all three";
  return {def};
}

}  // namespace tensormill::ops::where_ops
