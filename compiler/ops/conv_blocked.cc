/// conv_blocked: two-dimensional convolution of a blocked tensor with weights in the order in which a
/// register tile of output columns x channel blocks reads them.
#include "compiler/ops/blocked.h"
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/words.h"

namespace tensormill::ops::conv_blocked_ops {

std::vector<ir::OpDef> family();

namespace {

// Lanes of x from this one on are not read.
int64_t read_channels(const ir::Attrs& attrs, const Shape& x) {
  return attr_int(attrs, "channels", x[1] * x[4]);
}

BlockedConv read_conv(const ir::Attrs& attrs, const Shape& x, const Shape& w) {
  BlockedConv conv = read_blocked_conv(attrs, x[0], {x[2], x[3]}, {w[2], w[3]}, w[0], w[5]);
  conv.has_input = num_elements(x) != 0;
  return conv;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = ranked_input(context, 0, 5, "blocked", kFloatsOrWords);
  const Shape& w = ranked_input(context, 1, 6, "packed weights").shape;
  const int64_t groups = attr_int(context.attrs, "group", 1);
  if (groups < 1) fail("attribute group is " + std::to_string(groups) + ", expected at least 1");
  const int64_t per_element = read_words(context.attrs, x.dtype) ? kBytesPerWord : 1;
  if (w[4] != x.shape[4] || w[5] != x.shape[4] * per_element) {
    fail("the input has blocks of " + std::to_string(x.shape[4]) + " channels, the weights of " +
         std::to_string(w[4]) + " x " + std::to_string(w[5]));
  }
  if (w[0] % groups != 0) {
    fail(std::to_string(w[0]) + " output blocks do not divide into " + std::to_string(groups) + " groups");
  }
  if (x.shape[1] % groups != 0 || x.shape[1] / groups != w[1]) {
    fail("the input has " + std::to_string(x.shape[1]) + " blocks, the weights take " + std::to_string(w[1]) +
         " for each of " + std::to_string(groups) + " groups");
  }
  const int64_t lanes = x.shape[1] * x.shape[4], channels = read_channels(context.attrs, x.shape);
  if (channels != lanes &&
      (channels < 1 || channels > lanes || groups != 1 || w[2] * w[3] != 1 || per_element != 1)) {
    fail("attribute channels is " + std::to_string(channels) + ", expected 1 to " + std::to_string(lanes) +
         " (the input's lanes) with one group and a window of one tap");
  }
  const BlockedConv conv = read_conv(context.attrs, x.shape, w);
  check_bias(context, w[0] * conv.block);
  return {made_type(x.dtype, conv.out_shape())};
}

Tensor first_channels(const Tensor& plain, int64_t channels) {
  const Shape& from = plain.shape();
  Tensor result(plain.dtype(), {from[0], channels, from[2], from[3]});
  strided_copy(plain, result, row_major_strides(from), 0);
  return result;
}

/// The words' bytes along the input's channels.
void reference_of_words(const ir::ReferenceContext& context, void (*evaluate)(const ir::ReferenceContext&)) {
  const Tensor &x = *context.inputs[0], &w = *context.inputs[1];
  const Shape &xs = x.shape(), &ws = w.shape();
  const int64_t block = xs[4] * kBytesPerWord;
  const Tensor packed =
      permuted(bytes_of_words(w, true), {0, 1, 2, 3, 4, 6, 5}, {ws[0], ws[1], ws[2], ws[3], block, ws[5]});
  evaluate_as_integers(context, bytes_of_words(x, false).reshaped({xs[0], xs[1], xs[2], xs[3], block}),
                       packed, evaluate);
}

void reference(const ir::ReferenceContext& context) {
  if (attr_bool(context.attrs, "words", false)) return reference_of_words(context, &reference);
  const Tensor& x = *context.inputs[0];
  const Tensor& w = *context.inputs[1];
  const Shape &xs = x.shape(), &ws = w.shape();
  const int64_t block = ws[5];
  const Tensor plain_x = permuted(x, {0, 1, 4, 2, 3}, {xs[0], xs[1] * block, xs[2], xs[3]});
  const Tensor plain_w = permuted(w, {0, 5, 1, 4, 2, 3}, {ws[0] * block, ws[1] * block, ws[2], ws[3]});
  const int64_t groups = attr_int(context.attrs, "group", 1), channels = read_channels(context.attrs, xs);
  if (groups > 1) {
    blocked_conv_reference(context, plain_x, plain_w, groups, block);
  } else {
    blocked_conv_reference(context, first_channels(plain_x, channels), first_channels(plain_w, channels), 1,
                           block);
  }
}

/// Channels of the result from which on a strided convolution of one tap copies what it reads of the input.
constexpr int64_t kPickingChannels = 128;

// What a strided window of one tap reads, side by side: the convolution of that is pointwise, with tiles that
// need not end where rows end. `conv` becomes that convolution.
te::Tensor pick(const ir::ComputeContext& context, BlockedConv& conv) {
  const te::Tensor& x = context.inputs[0];
  BlockedConv picked = conv;
  picked.window.strides.assign(2, 1);
  picked.in = conv.out;
  if (conv.is_pointwise() || !picked.is_pointwise() || !conv.has_input || conv.out[0] * conv.out[1] == 0 ||
      conv.out_blocks * conv.block < kPickingChannels)
    return x;
  Shape shape = context.input_types[0].shape;
  shape[2] = conv.out[0];
  shape[3] = conv.out[1];
  const std::vector<int64_t> strides = conv.window.strides;
  conv = picked;
  return compute_safe(context.name + "_picked", shape, x->dtypes[0], [&](const std::vector<Expr>& axes) {
    return te::read(x, {axes[0], axes[1], axes[2] * Expr(strides[0]), axes[3] * Expr(strides[1]), axes[4]});
  });
}

// A sum over the channels alone, as one axis that ends with the last of them.
TeOutputs compute_channels(const ir::ComputeContext& context, const BlockedConv& conv, const te::Tensor& x,
                           int64_t channels) {
  return blocked_conv_stages(
      context, conv, {channels, 1, 1}, 1,
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps, const TapPosition& position) {
        const Expr block = te::floordiv(taps[0], Expr(conv.block));
        const Expr lane = te::floormod(taps[0], Expr(conv.block));
        const Expr value = te::read(x, {axes[0], block, position.row, position.column, lane});
        const Expr weight =
            te::read(context.inputs[1], {axes[1], block, taps[1], taps[2], lane, axes.back()});
        return widen(value) * widen(weight);
      });
}

bool part(ir::PartContext& context) {
  const ir::ValueType &x = *context.inputs[0], &w = *context.inputs[1];
  return part_of_windows(context, read_conv(context.attrs, x.shape, w.shape).window);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const Shape &x = context.input_types[0].shape, &w = context.input_types[1].shape;
  BlockedConv conv = read_conv(context.attrs, x, w);
  const int64_t groups = attr_int(context.attrs, "group", 1), channels = read_channels(context.attrs, x);
  const te::Tensor input = pick(context, conv);
  const bool words = attr_bool(context.attrs, "words", false);
  if (channels != x[1] * x[4]) return compute_channels(context, conv, input, channels);
  return blocked_conv_stages(
      context, conv, {w[1], w[2], w[3], w[4]}, 1,
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps, const TapPosition& position) {
        Expr block = taps[0];
        if (groups > 1) block = te::floordiv(axes[1], Expr(w[0] / groups)) * Expr(w[1]) + taps[0];
        const Expr value = te::read(input, {axes[0], block, position.row, position.column, taps[3]});
        const Expr weight =
            te::read(context.inputs[1], {axes[1], taps[0], taps[1], taps[2], taps[3], axes.back()});
        return product_of(words, value, weight);
      });
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "conv_blocked";
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
      "inputs x [N,ICb,H,W,b], w [OCb,ICb/group,KH,KW,b (in),b (out)], bias [OCb*b] (optional): x and the "
      "result [N,OCb,OH,OW,b] hold b channels side by side, lanes past the channels are zero in x, w and "
      "bias; "
      "attributes strides, dilations (ints, 1), pads (ints, begins then ends, 0), group (int, 1), channels "
      "(int, ICb*b; windows of one tap: lanes of x from this one on are not read), exact (bool, 0: as "
      "conv's), words (bool, 0: x, w, bias and the result are int32; x [N,ICb,H,W,b/4] and w [..,b/4,b] are "
      "words "
      "of four bytes along the input channels, unsigned in x, signed in w)";
  return {def};
}

}  // namespace tensormill::ops::conv_blocked_ops
