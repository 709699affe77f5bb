/// from_blocked: the inverse of to_blocked; lanes past the last channel are dropped.
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::from_blocked_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kNumeric);
  if (x.shape.size() < 3) {
    fail("input 0 has rank " + std::to_string(x.shape.size()) + ", expected at least 3");
  }
  const int64_t channels = attr_int(context.attrs, "channels");
  const int64_t block = x.shape.back();
  const int64_t lanes = x.shape[1] * block;
  if (channels < 0 || channels > lanes || (channels > 0 && lanes - channels >= block)) {
    fail("attribute channels is " + std::to_string(channels) + ", input 0 has " + std::to_string(x.shape[1]) +
         " blocks of " + std::to_string(block));
  }
  ir::SymShape out(x.shape.begin(), x.shape.end() - 1);
  out[1] = channels;
  return {made_type(x.dtype, out)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  const int64_t block = x.shape().back();
  const Shape strides = row_major_strides(x.shape());
  for_each_index(out.shape(), [&](int64_t to, const Shape& at) {
    int64_t from = at[0] * strides[0] + at[1] / block * strides[1] + at[1] % block;
    for (size_t d = 2; d < at.size(); ++d) from += at[d] * strides[d];
    copy_element(x, from, out, to);
  });
}

bool part(ir::PartContext& context) { return context.wanted.axis != 1 && part_of_first(context); }

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const int64_t block = context.input_types[0].shape.back();
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    std::vector<Expr> at = axes;
    at[1] = te::floordiv(axes[1], Expr(block));
    at.push_back(te::floormod(axes[1], Expr(block)));
    return te::read(context.inputs[0], at);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "from_blocked";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "x [N,blocks,rest...,block] as [N,channels,rest...]: channel c is lane c mod block of block c / block; "
      "attribute channels (int, required) leaves less than a block of lanes over";
  return {def};
}

}  // namespace tensormill::ops::from_blocked_ops
