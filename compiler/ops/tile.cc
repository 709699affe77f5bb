/// tile: whole copies side by side, or copies of each element.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::tile_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  static_cast<void>(attr_dims(context.attrs, "repeats"));
  static_cast<void>(attr_bool(context.attrs, "each", false));
  const ir::SymShape repeats = attr_dims(context.attrs, "repeats", x.shape.size(), 1, 0, kMaxTensorBytes);
  ir::SymShape out;
  for (size_t d = 0; d < repeats.size(); ++d) {
    int64_t extent = 0;
    if (__builtin_mul_overflow(x.shape[d].hint(), repeats[d].hint(), &extent))
      fail("extent " + to_string(x.shape[d]) + " times " + to_string(repeats[d]) + " is too large");
    out.push_back(x.shape[d] * repeats[d]);
  }
  return {made_type(x.dtype, out)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Shape strides = row_major_strides(x.shape());
  const ir::Ints repeats = attr_ints(context.attrs, "repeats");
  const bool each = attr_bool(context.attrs, "each", false);
  for_each_index(context.outputs[0]->shape(), [&](int64_t position, const Shape& index) {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d)
      from += (each ? index[d] / repeats[d] : index[d] % x.shape()[d]) * strides[d];
    copy_element(x, from, *context.outputs[0], position);
  });
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const ir::SymShape& in = context.input_types[0].shape;
  const ir::SymShape repeats = attr_dims(context.attrs, "repeats");
  const bool each = attr_bool(context.attrs, "each", false);
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    std::vector<Expr> index;
    for (size_t d = 0; d < in.size(); ++d) {
      index.push_back(is_proven(ir::Relation::kEqual, in[d], out.shape[d]) ? axes[d]
                      : each ? te::floordiv(axes[d], Expr(repeats[d]))
                             : te::floormod(axes[d], Expr(in[d])));
    }
    return te::read(context.inputs[0], index);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "tile";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "x repeated attribute repeats[d] (ints, required, >= 0) times along each dimension d; attribute each "
      "(bool, default 0): each element is, in its place";
  return {def};
}

}  // namespace tensormill::ops::tile_ops
