/// with_shape: x under extents that are its own where they are equal, which is a guard where it is no proof.
#include "compiler/ops/reference_util.h"
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

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "with_shape";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &copy_reference;
  def.compute = &compute_copy;
  def.is_view = true;
  def.doc =
      "x, whose extents are those of attribute shape (dims, required): what leaves the body of a loop, whose "
      "symbols mean nothing behind it";
  return {def};
}

}  // namespace tensormill::ops::with_shape_ops
