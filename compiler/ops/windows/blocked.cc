#include "compiler/ops/windows/blocked.h"

#include <algorithm>

#include "compiler/ops/reference_util.h"
#include "compiler/ops/windows/conv.h"

namespace tensormill::ops {

bool BlockedConv::is_pointwise() const {
  const auto all = [](const std::vector<int64_t>& values, int64_t value) {
    return std::all_of(values.begin(), values.end(), [&](int64_t each) { return each == value; });
  };
  return all(window.kernel, 1) && all(window.strides, 1) && all(window.pads_begin, 0) &&
         all(window.pads_end, 0);
}

ir::SymShape BlockedConv::out_shape() const {
  ir::SymShape shape = {batch, out_blocks};
  shape.insert(shape.end(), out.begin(), out.end());
  shape.push_back(block);
  return shape;
}

const ir::ValueType& blocked_input(const ir::InferContext& context, DTypeSet allowed) {
  const ir::ValueType& type = input_of(context, 0, allowed);
  const size_t dims = type.shape.size();
  if (dims < 4 || dims > 6) {
    fail("input 0 (blocked) has rank " + std::to_string(dims) + ", expected 4 to 6");
  }
  return type;
}

ir::SymShape extents_of(const ir::SymShape& shape, size_t first, size_t rank) {
  const auto begin = shape.begin() + static_cast<Shape::difference_type>(first);
  return {begin, begin + static_cast<Shape::difference_type>(rank)};
}

BlockedConv read_blocked_conv(const ir::Attrs& attrs, const ir::SymInt& batch, const ir::SymShape& in,
                              const Shape& kernel, int64_t out_blocks, int64_t block) {
  if (block < 1) fail("a block has " + std::to_string(block) + " channels, expected at least 1");
  BlockedConv conv;
  conv.batch = batch;
  conv.out_blocks = out_blocks;
  conv.block = block;
  conv.in = in;
  conv.window = read_window(attrs, kernel);
  conv.out = window_output(read_window(attrs, ir::SymShape(kernel)), in, false);
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
  if (bias.shape != ir::SymShape{channels}) {
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
  const ir::SymInt last =
      (conv.out[d] - 1) * window.strides[d] + (window.reach(d) - 1 - window.pads_begin[d]);
  const bool below = window.pads_begin[d] > 0;
  // Kernels of any extents do not know how the two are related: beside one question another costs nothing.
  const bool above =
      (below && !conv.in[d].is_constant()) || !is_proven(ir::Relation::kLess, last, conv.in[d]);
  const Expr low = at >= Expr(0), high = at < Expr(conv.in[d]);
  if (below && above) return {clamp_index(at, conv.in[d]), te::logical_and(low, high)};
  if (below) return {te::max(at, Expr(0)), low};
  if (above) return {te::min(at, Expr(conv.in[d] - 1)), high};
  return {at, {}};
}

}  // namespace

TapPosition tap_position(const BlockedConv& conv, const std::vector<Expr>& out,
                         const std::vector<Expr>& taps) {
  TapPosition position;
  for (size_t d = 0; d < out.size(); ++d) {
    const Coordinate coordinate = tap_coordinate(conv, d, out[d], taps[d]);
    position.at.push_back(coordinate.at);
    if (!coordinate.inside) continue;
    position.inside =
        position.inside ? te::logical_and(position.inside, coordinate.inside) : coordinate.inside;
  }
  return position;
}

std::vector<Expr> index_around(std::vector<Expr> first, const std::vector<Expr>& middle,
                               const std::vector<Expr>& last) {
  first.insert(first.end(), middle.begin(), middle.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

namespace {

/// The index of element `position` of `extents` in row-major order.
std::vector<Expr> unflattened(const Expr& position, const ir::SymShape& extents) {
  std::vector<Expr> at;
  Expr rest = position;
  for (size_t d = extents.size(); d-- > 1;) {
    at.insert(at.begin(), te::floormod(rest, Expr(extents[d])));
    rest = te::floordiv(rest, Expr(extents[d]));
  }
  at.insert(at.begin(), rest);
  return at;
}

std::vector<Expr> indices_of(const std::vector<Expr>& axes, size_t first, size_t rank) {
  const auto begin = axes.begin() + static_cast<std::vector<Expr>::difference_type>(first);
  return {begin, begin + static_cast<std::vector<Expr>::difference_type>(rank)};
}

}  // namespace

TeOutputs blocked_conv_stages(const ir::ComputeContext& context, const BlockedConv& conv, const Shape& taps,
                              size_t lead, const TapProduct& product) {
  const ir::ValueType& out = context.output_types[0];
  const DType accumulate = compute_dtype(out.dtype);
  // A pointwise convolution is summed over the image as one row: its tiles need not end where rows end. (Of
  // extents that only a run has the loops are joined.)
  const bool pointwise = conv.is_pointwise() && conv.out.is_constant();
  const size_t rank = conv.rank();
  ir::SymShape shape = out.shape;
  if (pointwise) shape = {conv.batch, conv.out_blocks, num_elements(conv.out), conv.block};
  const auto summand = [&](const std::vector<Expr>& axes, const std::vector<Expr>& at) {
    TapPosition position;
    if (pointwise) {
      position = {unflattened(axes[2], conv.out), {}};
    } else {
      position = tap_position(conv, indices_of(axes, 2, rank), indices_of(at, lead, rank));
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
    std::vector<Expr> index = axes;
    if (pointwise) {
      index = {axes[0], axes[1], flatten_index(indices_of(axes, 2, rank), conv.out), axes.back()};
    }
    Expr value = te::read(sums, index);
    if (bias) value = value + widen(te::read(bias, {axes[1] * Expr(conv.block) + axes.back()}));
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
  const size_t rank = shape.size() - 3;
  Shape channels_first = {shape[0], blocks * block}, apart = {shape[0], blocks, block};
  std::vector<size_t> order = {0, 1};
  for (size_t d = 0; d < rank; ++d) {
    channels_first.push_back(shape[2 + d]);
    apart.push_back(shape[2 + d]);
    order.push_back(3 + d);
  }
  order.push_back(2);
  Tensor plain(out.dtype(), channels_first);
  ir::Attrs attrs = context.attrs;
  attrs.set("group", groups);
  const Tensor* bias = context.inputs.size() > 2 ? context.inputs[2] : nullptr;
  conv_reference({attrs, {&x, &w, bias}, {&plain}});
  strided_copy(permuted(plain.reshaped(apart), order, shape), out, row_major_strides(shape), 0);
}

}  // namespace tensormill::ops
