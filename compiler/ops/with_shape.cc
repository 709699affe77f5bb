/// with_shape: x under extents that are its own where they are equal, which is a guard where it is no proof.
#include <cstring>

#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::with_shape_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const ir::ValueType out = made_type(x.dtype, attr_dims(context.attrs, "shape"));
  if (!demand_equal(x.shape, out.shape)) fail("x is " + to_string(x.shape) + ", not " + to_string(out.shape));
  return {out};
}

void reference(const ir::ReferenceContext& context) {
  std::memcpy(context.outputs[0]->data(), context.inputs[0]->data(), context.outputs[0]->num_bytes());
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  return {compute_safe(context.name, out.shape, out.dtype,
                       [&](const std::vector<Expr>& axes) { return te::read(context.inputs[0], axes); })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "with_shape";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.is_view = true;
  def.doc =
      "x, whose extents are those of attribute shape (dims, required): what leaves the body of a loop, whose "
      "symbols mean nothing behind it";
  return {def};
}

}  // namespace tensormill::ops::with_shape_ops
