/// conv_first: convolution of a plain tensor with few channels into a blocked one.
#include "compiler/ops/parts.h"
#include "compiler/ops/windows/blocked.h"

namespace tensormill::ops::conv_first_ops {

std::vector<ir::OpDef> family();

namespace {

BlockedConv read_conv(const ir::Attrs& attrs, const ir::SymShape& x, const Shape& w) {
  const size_t rank = x.size() - 2;
  BlockedConv conv =
      read_blocked_conv(attrs, x[0], extents_of(x, 2, rank), extents_of(w, 2, rank), w[0], w.back());
  conv.has_input = !is_empty(x);
  return conv;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kFloats);
  if (x.shape.size() < 3 || x.shape.size() > 5) {
    fail("input 0 (plain) has rank " + std::to_string(x.shape.size()) + ", expected 3 to 5");
  }
  const Shape& w = ranked_input(context, 1, x.shape.size() + 1, "packed weights").shape;
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
  std::vector<size_t> order = {0, ws.size() - 1};
  Shape shape = {ws[0] * ws.back()};
  for (size_t d = 1; d + 1 < ws.size(); ++d) {
    order.push_back(d);
    shape.push_back(ws[d]);
  }
  blocked_conv_reference(context, *context.inputs[0], permuted(w, order, shape), 1, ws.back());
}

bool part(ir::PartContext& context) {
  const ir::ValueType &x = *context.inputs[0], &w = *context.inputs[1];
  return part_of_windows(context, read_conv(context.attrs, x.shape, w.shape).window);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::SymShape& x = context.input_types[0].shape;
  const Shape w = context.input_types[1].shape;
  return blocked_conv_stages(
      context, read_conv(context.attrs, x, w), extents_of(w, 1, w.size() - 2), 1,
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps, const TapPosition& position) {
        const Expr value = te::read(context.inputs[0], index_around({axes[0], taps[0]}, position.at, {}));
        const Expr weight = te::read(context.inputs[1], index_around({axes[1]}, taps, {axes.back()}));
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
  def.tolerance = 1e-5;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "inputs x [N,C,spatial...] (1 to 3 spatial dims), w [OCb,C,kernel...,b], bias [OCb*b] (optional): the "
      "result [N,OCb,spatial...,b] holds b channels side by side; lanes past the channels are zero in w and "
      "bias; attributes strides, dilations (ints, 1), pads (ints, begins then ends, 0)";
  return {def};
}

}  // namespace tensormill::ops::conv_first_ops
