/// conv_blocked: convolution of a blocked tensor with weights in the order in which a
/// register tile of output columns x channel blocks reads them.
#include <algorithm>
#include <numeric>

#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/windows/blocked.h"
#include "compiler/ops/words.h"

namespace tensormill::ops::conv_blocked_ops {

std::vector<ir::OpDef> family();

namespace {

// Lanes of x from this one on are not read.
int64_t read_channels(const ir::Attrs& attrs, const ir::SymShape& x) {
  return attr_int(attrs, "channels", x[1] * x.back());
}

BlockedConv read_conv(const ir::Attrs& attrs, const ir::SymShape& x, const Shape& w) {
  const size_t rank = x.size() - 3;
  BlockedConv conv =
      read_blocked_conv(attrs, x[0], extents_of(x, 2, rank), extents_of(w, 2, rank), w[0], w.back());
  conv.has_input = !is_empty(x);
  return conv;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = blocked_input(context, kFloatsOrWords);
  const size_t rank = x.shape.size() - 3;
  const Shape& w = ranked_input(context, 1, rank + 4, "packed weights").shape;
  const int64_t lanes_in = x.shape.back(), taps = num_elements(extents_of(w, 2, rank));
  const int64_t groups = attr_int(context.attrs, "group", 1);
  if (groups < 1) fail("attribute group is " + std::to_string(groups) + ", expected at least 1");
  const int64_t per_element = read_words(context.attrs, x.dtype) ? kBytesPerWord : 1;
  if (w[rank + 2] != lanes_in || w.back() != lanes_in * per_element) {
    fail("the input has blocks of " + std::to_string(lanes_in) + " channels, the weights of " +
         std::to_string(w[rank + 2]) + " x " + std::to_string(w.back()));
  }
  if (w[0] % groups != 0) {
    fail(std::to_string(w[0]) + " output blocks do not divide into " + std::to_string(groups) + " groups");
  }
  if (x.shape[1] % groups != 0 || x.shape[1] / groups != w[1]) {
    fail("the input has " + std::to_string(x.shape[1]) + " blocks, the weights take " + std::to_string(w[1]) +
         " for each of " + std::to_string(groups) + " groups");
  }
  const int64_t lanes = x.shape[1] * lanes_in, channels = read_channels(context.attrs, x.shape);
  if (channels != lanes &&
      (channels < 1 || channels > lanes || groups != 1 || taps != 1 || per_element != 1)) {
    fail("attribute channels is " + std::to_string(channels) + ", expected 1 to " + std::to_string(lanes) +
         " (the input's lanes) with one group and a window of one tap");
  }
  const BlockedConv conv = read_conv(context.attrs, x.shape, w);
  check_bias(context, w[0] * conv.block);
  return {made_type(x.dtype, conv.out_shape())};
}

Tensor first_channels(const Tensor& plain, int64_t channels) {
  const Shape& from = plain.shape();
  Shape shape = from;
  shape[1] = channels;
  Tensor result(plain.dtype(), shape);
  strided_copy(plain, result, row_major_strides(from), 0);
  return result;
}

/// The lanes of x [N,ICb,spatial...,b] beside its blocks: [N,ICb*b,spatial...].
Tensor plain_input(const Tensor& x) {
  const Shape& from = x.shape();
  std::vector<size_t> order = {0, 1, from.size() - 1};
  Shape shape = {from[0], from[1] * from.back()};
  for (size_t d = 2; d + 1 < from.size(); ++d) {
    order.push_back(d);
    shape.push_back(from[d]);
  }
  return permuted(x, order, shape);
}

/// w [OCb,ICb,kernel...,b,b] as [OCb*b,ICb*b,kernel...].
Tensor plain_weights(const Tensor& w) {
  const Shape& from = w.shape();
  const size_t last = from.size() - 1;
  std::vector<size_t> order = {0, last, 1, last - 1};
  Shape shape = {from[0] * from[last], from[1] * from[last - 1]};
  for (size_t d = 2; d < last - 1; ++d) {
    order.push_back(d);
    shape.push_back(from[d]);
  }
  return permuted(w, order, shape);
}

/// The words' bytes along the input's channels.
void reference_of_words(const ir::ReferenceContext& context, void (*evaluate)(const ir::ReferenceContext&)) {
  const Tensor &x = *context.inputs[0], &w = *context.inputs[1];
  Shape xs = x.shape(), ws = w.shape();
  xs.back() *= kBytesPerWord;
  ws[ws.size() - 2] = xs.back();
  std::vector<size_t> order(ws.size() + 1);
  std::iota(order.begin(), order.end(), size_t{0});
  std::swap(order[ws.size() - 1], order[ws.size()]);
  const Tensor packed = permuted(bytes_of_words(w, true), order, ws);
  evaluate_as_integers(context, bytes_of_words(x, false).reshaped(xs), packed, evaluate);
}

void reference(const ir::ReferenceContext& context) {
  if (attr_bool(context.attrs, "words", false)) return reference_of_words(context, &reference);
  const Tensor& x = *context.inputs[0];
  const Tensor& w = *context.inputs[1];
  const int64_t block = w.shape().back();
  const Tensor plain_x = plain_input(x), plain_w = plain_weights(w);
  const int64_t groups = attr_int(context.attrs, "group", 1),
                channels = read_channels(context.attrs, x.shape());
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
  picked.window.strides.assign(conv.rank(), 1);
  picked.in = conv.out;
  if (conv.is_pointwise() || !picked.is_pointwise() || !conv.has_input || is_empty(conv.out) ||
      conv.out_blocks * conv.block < kPickingChannels)
    return x;
  ir::SymShape shape = context.input_types[0].shape;
  std::copy(conv.out.begin(), conv.out.end(), shape.begin() + 2);
  const std::vector<int64_t> strides = conv.window.strides;
  conv = picked;
  return compute_safe(context.name + "_picked", shape, x->dtypes[0], [&](const std::vector<Expr>& axes) {
    std::vector<Expr> at = axes;
    for (size_t d = 0; d < strides.size(); ++d) at[d + 2] = axes[d + 2] * Expr(strides[d]);
    return te::read(x, at);
  });
}

// A sum over the channels alone, as one axis that ends with the last of them.
TeOutputs compute_channels(const ir::ComputeContext& context, const BlockedConv& conv, const te::Tensor& x,
                           int64_t channels) {
  Shape extents(conv.rank() + 1, 1);
  extents[0] = channels;
  return blocked_conv_stages(
      context, conv, extents, 1,
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps, const TapPosition& position) {
        const Expr block = te::floordiv(taps[0], Expr(conv.block));
        const Expr lane = te::floormod(taps[0], Expr(conv.block));
        const Expr value = te::read(x, index_around({axes[0], block}, position.at, {lane}));
        const std::vector<Expr> window(taps.begin() + 1, taps.end());
        const Expr weight =
            te::read(context.inputs[1], index_around({axes[1], block}, window, {lane, axes.back()}));
        return widen(value) * widen(weight);
      });
}

bool part(ir::PartContext& context) {
  const ir::ValueType &x = *context.inputs[0], &w = *context.inputs[1];
  return part_of_windows(context, read_conv(context.attrs, x.shape, w.shape).window);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::SymShape& x = context.input_types[0].shape;
  const Shape w = context.input_types[1].shape;
  BlockedConv conv = read_conv(context.attrs, x, w);
  const int64_t groups = attr_int(context.attrs, "group", 1), channels = read_channels(context.attrs, x);
  const te::Tensor input = pick(context, conv);
  const bool words = attr_bool(context.attrs, "words", false);
  if (channels != x[1] * x.back()) return compute_channels(context, conv, input, channels);
  return blocked_conv_stages(
      context, conv, extents_of(w, 1, w.size() - 2), 1,
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps, const TapPosition& position) {
        Expr block = taps[0];
        if (groups > 1) block = te::floordiv(axes[1], Expr(w[0] / groups)) * Expr(w[1]) + taps[0];
        const Expr value = te::read(input, index_around({axes[0], block}, position.at, {taps.back()}));
        const Expr weight = te::read(context.inputs[1], index_around({axes[1]}, taps, {axes.back()}));
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
  def.tolerance = 1e-5;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "inputs x [N,ICb,spatial...,b] (1 to 3 spatial dims), w [OCb,ICb/group,kernel...,b (in),b (out)], bias "
      "[OCb*b] (optional): x and the result [N,OCb,spatial...,b] hold b channels side by side, lanes past "
      "the channels are zero in x, w and bias; attributes strides, dilations (ints, 1), pads (ints, begins "
      "then ends, 0), group (int, 1), channels (int, ICb*b; windows of one tap: lanes of x from this one on "
      "are not read), exact (bool, 0: as conv's), words (bool, 0: x, w, bias and the result are int32; x "
      "[N,ICb,spatial...,b/4] and w [..,b/4,b] are words of four bytes along the input channels, unsigned in "
      "x, signed in w)";
  return {def};
}

}  // namespace tensormill::ops::conv_blocked_ops
