/// trilu: the upper or lower triangle of matrices.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::trilu_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  if (x.shape.size() < 2) {
    fail("input 0 has rank " + std::to_string(x.shape.size()) + ", expected at least 2");
  }
  static_cast<void>(attr_bool(context.attrs, "upper", true));
  static_cast<void>(attr_int(context.attrs, "k", 0));
  return {made_type(x.dtype, x.shape)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const bool upper = attr_bool(context.attrs, "upper", true);
  const int64_t k = attr_int(context.attrs, "k", 0);
  const size_t rank = x.shape().size();
  const Tensor zero = Tensor::zeros(x.dtype(), {1});
  for_each_index(x.shape(), [&](int64_t position, const Shape& index) {
    const int64_t diagonal = index[rank - 1] - index[rank - 2];
    const bool kept = upper ? diagonal >= k : diagonal <= k;
    copy_element(kept ? x : zero, kept ? position : 0, *context.outputs[0], position);
  });
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const bool upper = attr_bool(context.attrs, "upper", true);
  const Expr k(attr_int(context.attrs, "k", 0));
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const Expr diagonal = axes.back() - axes[axes.size() - 2];
    const Expr value = te::read(context.inputs[0], axes);
    return te::select(upper ? diagonal >= k : diagonal <= k, value, constant_like(value, 0));
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "trilu";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "the elements of the last two dims with column - row >= k (attribute upper, bool, 1) or <= k (upper "
      "0), zero elsewhere; attribute k (int, 0)";
  return {def};
}

}  // namespace tensormill::ops::trilu_ops
