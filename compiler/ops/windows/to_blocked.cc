/// to_blocked: channels in blocks of vector lanes, the lane last: the layout in which convolutions compute.
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::to_blocked_ops {

std::vector<ir::OpDef> family();

namespace {

/// More lanes than any vector of 8-bit elements has; keeps the padded size far from overflow.
constexpr int64_t kMaxBlock = 64;

int64_t read_block(const ir::Attrs& attrs) {
  const int64_t block = attr_int(attrs, "block");
  if (block < 1 || block > kMaxBlock) {
    fail("attribute block is " + std::to_string(block) + ", expected 1 to " + std::to_string(kMaxBlock));
  }
  return block;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kNumeric);
  if (x.shape.size() < 2) {
    fail("input 0 has rank " + std::to_string(x.shape.size()) + ", expected at least 2");
  }
  const int64_t block = read_block(context.attrs);
  ir::SymShape out = x.shape;
  out[1] = ceildiv(x.shape[1], block);
  out.push_back(block);
  return {made_type(x.dtype, out)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  const int64_t channels = x.shape()[1];
  const int64_t block = out.shape().back();
  const Shape strides = row_major_strides(x.shape());
  for_each_index(out.shape(), [&](int64_t to, const Shape& at) {
    const int64_t channel = at[1] * block + at.back();
    if (channel >= channels) {
      out.set_element(to, 0.0);
      return;
    }
    int64_t from = at[0] * strides[0] + channel * strides[1];
    for (size_t d = 2; d < x.shape().size(); ++d) from += at[d] * strides[d];
    copy_element(x, from, out, to);
  });
}

bool part(ir::PartContext& context) {
  const size_t last = context.output.shape.size() - 1;
  return context.wanted.axis != 1 && context.wanted.axis != last && part_of_first(context);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const int64_t channels = context.input_types[0].shape[1];
  const int64_t block = out.shape.back();
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const Expr channel = axes[1] * Expr(block) + axes.back();
    std::vector<Expr> at(axes.begin(), axes.end() - 1);
    if (channels % block == 0) {
      at[1] = channel;
      return te::read(context.inputs[0], at);
    }
    at[1] = clamp_index(channel, channels);
    const Expr value = te::read(context.inputs[0], at);
    return te::select(channel < Expr(channels), value, te::imm_like({out.dtype, 1}, 0));
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "to_blocked";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "x [N,C,rest...] as [N,ceil(C/block),rest...,block]: channel c is lane c mod block of block c / block; "
      "lanes past C are 0; attribute block (int, required)";
  return {def};
}

}  // namespace tensormill::ops::to_blocked_ops
