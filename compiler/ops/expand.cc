/// expand: numpy's broadcasting to a given shape.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::expand_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const ir::ValueType wanted = made_type(x.dtype, attr_dims(context.attrs, "shape"));
  return {made_type(x.dtype, broadcast_checked(x.shape, wanted.shape))};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  strided_copy(x, out, broadcast_strides(x.shape(), out.shape()), 0);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    return read_broadcast(context.inputs[0], context.input_types[0].shape, context.output_types[0].shape,
                          axes);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "expand";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "x broadcast with attribute shape (ints, required): dims of 1 on either side take the other's extent";
  return {def};
}

}  // namespace tensormill::ops::expand_ops
