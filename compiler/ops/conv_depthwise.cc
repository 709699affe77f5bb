/// conv_depthwise: each channel of a blocked tensor with a window of its own.
#include "compiler/ops/blocked.h"
#include "compiler/ops/parts.h"

namespace tensormill::ops::conv_depthwise_ops {

std::vector<ir::OpDef> family();

namespace {

BlockedConv read_conv(const ir::Attrs& attrs, const Shape& x, const Shape& w) {
  BlockedConv conv = read_blocked_conv(attrs, x[0], {x[2], x[3]}, {w[1], w[2]}, w[0], w[3]);
  conv.has_input = num_elements(x) != 0;
  return conv;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = ranked_input(context, 0, 5, "blocked");
  const Shape& w = ranked_input(context, 1, 4, "packed weights").shape;
  if (w[0] != x.shape[1] || w[3] != x.shape[4]) {
    fail("the input has " + std::to_string(x.shape[1]) + " blocks of " + std::to_string(x.shape[4]) +
         " channels, the weights " + std::to_string(w[0]) + " of " + std::to_string(w[3]));
  }
  const BlockedConv conv = read_conv(context.attrs, x.shape, w);
  check_bias(context, w[0] * conv.block);
  return {made_type(x.dtype, conv.out_shape())};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Tensor& w = *context.inputs[1];
  const Shape &xs = x.shape(), &ws = w.shape();
  const int64_t block = ws[3], channels = ws[0] * block;
  blocked_conv_reference(context, permuted(x, {0, 1, 4, 2, 3}, {xs[0], channels, xs[2], xs[3]}),
                         permuted(w, {0, 3, 1, 2}, {channels, 1, ws[1], ws[2]}), channels, block);
}

bool part(ir::PartContext& context) {
  const ir::ValueType &x = *context.inputs[0], &w = *context.inputs[1];
  return part_of_windows(context, read_conv(context.attrs, x.shape, w.shape).window);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const Shape &x = context.input_types[0].shape, &w = context.input_types[1].shape;
  return blocked_conv_stages(
      context, read_conv(context.attrs, x, w), {w[1], w[2]}, 0,
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps, const TapPosition& position) {
        const Expr value =
            te::read(context.inputs[0], {axes[0], axes[1], position.row, position.column, axes.back()});
        return widen(value) * widen(te::read(context.inputs[1], {axes[1], taps[0], taps[1], axes.back()}));
      });
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "conv_depthwise";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  def.kernel_class = ir::KernelClass::kDepthwise;
  def.tolerance = 1e-5;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "inputs x [N,Cb,H,W,b], w [Cb,KH,KW,b], bias [Cb*b] (optional): every channel of the blocked x with a "
      "window of "
      "its own; lanes past the channels are zero in w and bias; attributes strides, dilations (ints, 1), "
      "pads (ints, "
      "begins then ends, 0)";
  return {def};
}

}  // namespace tensormill::ops::conv_depthwise_ops
