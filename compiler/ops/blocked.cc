#include "compiler/ops/blocked.h"

#include <algorithm>

#include "compiler/ops/conv.h"
#include "compiler/ops/reference_util.h"

namespace tensormill::ops {

bool BlockedConv::is_pointwise() const {
  const auto all = [](const std::vector<int64_t>& values, int64_t value) {
    return std::all_of(values.begin(), values.end(), [&](int64_t each) { return each == value; });
  };
  return all(window.kernel, 1) && all(window.strides, 1) && all(window.pads_begin, 0) &&
         all(window.pads_end, 0);
}

Shape BlockedConv::out_shape() const { return {batch, out_blocks, out[0], out[1], block}; }

BlockedConv read_blocked_conv(const ir::Attrs& attrs, int64_t batch, const Shape& in, const Shape& kernel,
                              int64_t out_blocks, int64_t block) {
  if (block < 1) fail("a block has " + std::to_string(block) + " channels, expected at least 1");
  BlockedConv conv;
  conv.batch = batch;
  conv.out_blocks = out_blocks;
  conv.block = block;
  conv.in = in;
  conv.window = read_window(attrs, kernel);
  conv.out = window_output(conv.window, in, false);
  return conv;
}

const ir::ValueType& ranked_input(const ir::InferContext& context, size_t index, size_t rank,
                                  const std::string& what, DTypeSet allowed) {
  const ir::ValueType& type = index == 0 ? input_of(context, 0, allowed) : input_like_first(context, index);
  if (type.shape.size() != rank) {
    fail("input " + std::to_string(index) + " (" + what + ") has rank " + std::to_string(type.shape.size()) +
         ", expected " + std::to_string(rank));
  }
  return type;
}

void check_bias(const ir::InferContext& context, int64_t channels) {
  if (!has_input(context, 2)) return;
  const ir::ValueType& bias = input_like_first(context, 2);
  if (bias.shape != Shape{channels}) {
    fail("the bias has shape " + to_string(bias.shape) + ", expected [" + std::to_string(channels) + "]");
  }
}

namespace {

/// One coordinate of a tap and the condition under which it is in the input (null: always).
struct Coordinate {
  Expr at;
  Expr inside;
};

Coordinate tap_coordinate(const BlockedConv& conv, size_t d, const Expr& out, const Expr& tap) {
  const Window& window = conv.window;
  const Expr at =
      out * Expr(window.strides[d]) + tap * Expr(window.dilations[d]) - Expr(window.pads_begin[d]);
  const int64_t last = (conv.out[d] - 1) * window.strides[d] + window.reach(d) - 1 - window.pads_begin[d];
  const bool below = window.pads_begin[d] > 0, above = last >= conv.in[d];
  const Expr low = at >= Expr(0), high = at < Expr(conv.in[d]);
  if (below && above) return {clamp_index(at, conv.in[d]), te::logical_and(low, high)};
  if (below) return {te::max(at, Expr(0)), low};
  if (above) return {te::min(at, Expr(conv.in[d] - 1)), high};
  return {at, {}};
}

}  // namespace

TapPosition tap_position(const BlockedConv& conv, const Expr& oh, const Expr& ow, const Expr& kh,
                         const Expr& kw) {
  const Coordinate row = tap_coordinate(conv, 0, oh, kh), column = tap_coordinate(conv, 1, ow, kw);
  TapPosition position{row.at, column.at, row.inside ? row.inside : column.inside};
  if (row.inside && column.inside) position.inside = te::logical_and(row.inside, column.inside);
  return position;
}

TeOutputs blocked_conv_stages(const ir::ComputeContext& context, const BlockedConv& conv, const Shape& taps,
                              size_t lead, const TapProduct& product) {
  const ir::ValueType& out = context.output_types[0];
  const DType accumulate = compute_dtype(out.dtype);
  const bool pointwise = conv.is_pointwise();
  const int64_t width = conv.out[1];
  // A pointwise convolution is summed over the image as one row: its tiles need not end where rows end.
  Shape shape = out.shape;
  if (pointwise) shape = {conv.batch, conv.out_blocks, conv.out[0] * width, conv.block};
  const auto summand = [&](const std::vector<Expr>& axes, const std::vector<Expr>& at) {
    TapPosition position;
    if (pointwise) {
      position = {te::floordiv(axes[2], Expr(width)), te::floormod(axes[2], Expr(width)), {}};
    } else {
      position = tap_position(conv, axes[2], axes[3], at[lead], at[lead + 1]);
    }
    const Expr value = product(axes, at, position);
    return position.inside ? te::select(position.inside, value, constant_like(value, 0)) : value;
  };
  const Shape extents = conv.has_input ? taps : Shape{0};
  const te::Tensor sums =
      reduce_safe(context.name + "_sums", te::ReduceOp::kSum, shape, extents, accumulate, summand);
  const te::Tensor bias = context.inputs.size() > 2 ? context.inputs[2] : nullptr;
  if (!pointwise && !bias) return {narrow_stage(context.name + "_out", sums, out.shape, out.dtype)};
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const Expr row = pointwise ? axes[2] * Expr(width) + axes[3] : axes[2];
    const std::vector<Expr> index = pointwise ? std::vector<Expr>{axes[0], axes[1], row, axes[4]} : axes;
    Expr value = te::read(sums, index);
    if (bias) value = value + widen(te::read(bias, {axes[1] * Expr(conv.block) + axes[4]}));
    return narrow(value, out.dtype);
  })};
}

Tensor permuted(const Tensor& tensor, const std::vector<size_t>& order, const Shape& shape) {
  const Shape strides = row_major_strides(tensor.shape());
  Shape to, from;
  for (size_t d : order) {
    to.push_back(tensor.shape()[d]);
    from.push_back(strides[d]);
  }
  Tensor result(tensor.dtype(), to);
  strided_copy(tensor, result, from, 0);
  return result.reshaped(shape);
}

void blocked_conv_reference(const ir::ReferenceContext& context, const Tensor& x, const Tensor& w,
                            int64_t groups, int64_t block) {
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const Shape& shape = out.shape();
  const int64_t blocks = shape[1];
  Tensor plain(out.dtype(), {shape[0], blocks * block, shape[2], shape[3]});
  ir::Attrs attrs = context.attrs;
  attrs.set("group", groups);
  const Tensor* bias = context.inputs.size() > 2 ? context.inputs[2] : nullptr;
  conv_reference({attrs, {&x, &w, bias}, {&plain}});
  const Tensor apart = plain.reshaped({shape[0], blocks, block, shape[2], shape[3]});
  strided_copy(permuted(apart, {0, 1, 3, 4, 2}, shape), out, row_major_strides(shape), 0);
}

}  // namespace tensormill::ops
