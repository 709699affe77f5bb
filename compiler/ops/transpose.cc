/// transpose: dimensions in another order.
#include <algorithm>

#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::transpose_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<size_t> permutation(const ir::Attrs& attrs, size_t rank) {
  const int64_t last = static_cast<int64_t>(rank) - 1;
  if (!attrs.has("perm")) {
    std::vector<size_t> reversed;
    for (size_t d = rank; d-- > 0;) reversed.push_back(d);
    return reversed;
  }
  const ir::Ints given = attr_ints(attrs, "perm", rank, 0, 0, std::max<int64_t>(last, 0));
  std::vector<size_t> perm(given.begin(), given.end());
  std::vector<bool> seen(rank, false);
  for (const size_t d : perm) {
    if (seen[d]) fail("attribute perm names dimension " + std::to_string(d) + " twice");
    seen[d] = true;
  }
  return perm;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  ir::SymShape out;
  for (const size_t d : permutation(context.attrs, x.shape.size())) out.push_back(x.shape[d]);
  return {made_type(x.dtype, out)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Shape own = row_major_strides(x.shape());
  Shape strides;
  for (const size_t d : permutation(context.attrs, x.shape().size())) strides.push_back(own[d]);
  strided_copy(x, *context.outputs[0], strides, 0);
}

bool part(ir::PartContext& context) {
  const std::vector<size_t> perm = permutation(context.attrs, context.output.shape.size());
  context.parts[0] = {perm[context.wanted.axis], context.wanted.begin, context.wanted.end};
  return true;
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const std::vector<size_t> perm = permutation(context.attrs, out.shape.size());
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    std::vector<Expr> index(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) index[perm[d]] = axes[d];
    return te::read(context.inputs[0], index);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "transpose";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "output dimension d is input dimension perm[d]; attribute perm (ints, reversed order when missing)";
  return {def};
}

}  // namespace tensormill::ops::transpose_ops
