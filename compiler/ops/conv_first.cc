/// conv_first: two-dimensional convolution of a plain tensor with few channels into a blocked one.
#include "compiler/ops/blocked.h"
#include "compiler/ops/parts.h"

namespace tensormill::ops::conv_first_ops {

std::vector<ir::OpDef> family();

namespace {

BlockedConv read_conv(const ir::Attrs& attrs, const Shape& x, const Shape& w) {
  BlockedConv conv = read_blocked_conv(attrs, x[0], {x[2], x[3]}, {w[2], w[3]}, w[0], w[4]);
  conv.has_input = num_elements(x) != 0;
  return conv;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = ranked_input(context, 0, 4, "plain");
  const Shape& w = ranked_input(context, 1, 5, "packed weights").shape;
  if (x.shape[1] != w[1]) {
    fail("the input has " + std::to_string(x.shape[1]) + " channels, the weights take " +
         std::to_string(w[1]));
  }
  const BlockedConv conv = read_conv(context.attrs, x.shape, w);
  check_bias(context, w[0] * conv.block);
  return {made_type(x.dtype, conv.out_shape())};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& w = *context.inputs[1];
  const Shape& ws = w.shape();
  blocked_conv_reference(context, *context.inputs[0],
                         permuted(w, {0, 4, 1, 2, 3}, {ws[0] * ws[4], ws[1], ws[2], ws[3]}), 1, ws[4]);
}

bool part(ir::PartContext& context) {
  const ir::ValueType &x = *context.inputs[0], &w = *context.inputs[1];
  return part_of_windows(context, read_conv(context.attrs, x.shape, w.shape).window);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const Shape &x = context.input_types[0].shape, &w = context.input_types[1].shape;
  return blocked_conv_stages(
      context, read_conv(context.attrs, x, w), {w[1], w[2], w[3]}, 1,
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps, const TapPosition& position) {
        const Expr value = te::read(context.inputs[0], {axes[0], taps[0], position.row, position.column});
        const Expr weight = te::read(context.inputs[1], {axes[1], taps[0], taps[1], taps[2], axes.back()});
        return widen(value) * widen(weight);
      });
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "conv_first";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  def.kernel_class = ir::KernelClass::kConvBlocked;
  def.tolerance = 1e-5;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "inputs x [N,C,H,W], w [OCb,C,KH,KW,b], bias [OCb*b] (optional): the result [N,OCb,OH,OW,b] holds b "
      "channels "
      "side by side; lanes past the channels are zero in w and bias; attributes strides, dilations (ints, "
      "1), pads "
      "(ints, begins then ends, 0)";
  return {def};
}

}  // namespace tensormill::ops::conv_first_ops
