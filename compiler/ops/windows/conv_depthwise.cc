/// conv_depthwise: each channel of a blocked tensor with a window of its own.
#include "compiler/ops/parts.h"
#include "compiler/ops/windows/blocked.h"

namespace tensormill::ops::conv_depthwise_ops {

std::vector<ir::OpDef> family();

namespace {

BlockedConv read_conv(const ir::Attrs& attrs, const ir::SymShape& x, const Shape& w) {
  const size_t rank = x.size() - 3;
  BlockedConv conv =
      read_blocked_conv(attrs, x[0], extents_of(x, 2, rank), extents_of(w, 1, rank), w[0], w.back());
  conv.has_input = !is_empty(x);
  return conv;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = blocked_input(context);
  const size_t rank = x.shape.size() - 3;
  const Shape& w = ranked_input(context, 1, rank + 2, "packed weights").shape;
  if (w[0] != x.shape[1] || w.back() != x.shape.back()) {
    fail("the input has " + std::to_string(x.shape[1]) + " blocks of " + std::to_string(x.shape.back()) +
         " channels, the weights " + std::to_string(w[0]) + " of " + std::to_string(w.back()));
  }
  const BlockedConv conv = read_conv(context.attrs, x.shape, w);
  check_bias(context, w[0] * conv.block);
  return {made_type(x.dtype, conv.out_shape())};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Tensor& w = *context.inputs[1];
  const Shape &xs = x.shape(), &ws = w.shape();
  const int64_t block = ws.back(), channels = ws[0] * block;
  std::vector<size_t> x_order = {0, 1, xs.size() - 1}, w_order = {0, ws.size() - 1};
  Shape x_shape = {xs[0], channels}, w_shape = {channels, 1};
  for (size_t d = 1; d + 1 < ws.size(); ++d) {
    x_order.push_back(d + 1);
    x_shape.push_back(xs[d + 1]);
    w_order.push_back(d);
    w_shape.push_back(ws[d]);
  }
  blocked_conv_reference(context, permuted(x, x_order, x_shape), permuted(w, w_order, w_shape), channels,
                         block);
}

bool part(ir::PartContext& context) {
  const ir::ValueType &x = *context.inputs[0], &w = *context.inputs[1];
  return part_of_windows(context, read_conv(context.attrs, x.shape, w.shape).window);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::SymShape& x = context.input_types[0].shape;
  const Shape w = context.input_types[1].shape;
  return blocked_conv_stages(
      context, read_conv(context.attrs, x, w), extents_of(w, 1, w.size() - 2), 0,
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps, const TapPosition& position) {
        const Expr value =
            te::read(context.inputs[0], index_around({axes[0], axes[1]}, position.at, {axes.back()}));
        return widen(value) *
               widen(te::read(context.inputs[1], index_around({axes[1]}, taps, {axes.back()})));
      });
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "conv_depthwise";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  def.tolerance = 1e-5;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "inputs x [N,Cb,spatial...,b] (1 to 3 spatial dims), w [Cb,kernel...,b], bias [Cb*b] (optional): every "
      "channel of the blocked x with a window of its own; lanes past the channels are zero in w and bias; "
      "attributes strides, dilations (ints, 1), pads (ints, begins then ends, 0)";
  return {def};
}

}  // namespace tensormill::ops::conv_depthwise_ops
