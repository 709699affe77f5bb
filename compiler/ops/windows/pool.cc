/// max_pool, avg_pool: pooling over 1 to 4 spatial dimensions.
#include <algorithm>
#include <limits>

#include "compiler/ops/map_layout.h"
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/windows/blocked.h"
#include "compiler/ops/windows/window.h"

namespace tensormill::ops::pool_ops {

std::vector<ir::OpDef> family();

namespace {

Window pool_window(const ir::Attrs& attrs) { return read_window(attrs, attr_ints(attrs, "kernel")); }

std::vector<ir::ValueType> infer(const ir::InferContext& context, DTypeSet allowed) {
  const ir::ValueType& x = input_of(context, 0, allowed);
  const size_t rank = x.shape.size();
  if (rank < 3 || rank > 6) fail("input 0 has rank " + std::to_string(rank) + ", expected 3 to 6");
  const size_t kernel_rank = attr_ints(context.attrs, "kernel").size();
  if (kernel_rank != rank - 2) {
    fail("attribute kernel has " + std::to_string(kernel_rank) + " values, expected " +
         std::to_string(rank - 2));
  }
  static_cast<void>(attr_bool(context.attrs, "count_include_pad", false));
  ir::SymShape out = window_output(read_window(context.attrs, attr_dims(context.attrs, "kernel")),
                                   spatial_of(x.shape), attr_bool(context.attrs, "ceil_mode", false));
  out.insert(out.begin(), {x.shape[0], x.shape[1]});
  return {made_type(x.dtype, out)};
}

std::vector<ir::ValueType> infer_max(const ir::InferContext& context) { return infer(context, kNumeric); }
std::vector<ir::ValueType> infer_avg(const ir::InferContext& context) { return infer(context, kFloats); }

/// Calls f(output position, input channel offset, tap, position in the channel or -1) for each tap of each
/// output element, taps in row-major order.
template <typename F>
void for_each_tap(const Window& window, const Shape& x, const Shape& out, F&& f) {
  const Shape in = spatial_of(x);
  const int64_t channel_size = num_elements(in);
  const Shape spatial = spatial_of(out);
  const int64_t points = num_elements(spatial);
  for (int64_t channel = 0; channel < out[0] * out[1]; ++channel) {
    for_each_index(spatial, [&](int64_t point, const Shape& at) {
      for_each_index(window.kernel, [&](int64_t tap, const Shape& offset) {
        int64_t position = 0;
        for (size_t d = 0; d < window.rank(); ++d) {
          const int64_t i =
              at[d] * window.strides[d] + offset[d] * window.dilations[d] - window.pads_begin[d];
          position = position < 0 || i < 0 || i >= in[d] ? -1 : position * in[d] + i;
        }
        f(channel * points + point, channel * channel_size, tap, position);
      });
    });
  }
}

void reference_max(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const Window window = pool_window(context.attrs);
  if (is_float(x.dtype())) {
    const std::vector<double> xs = to_doubles(x);
    std::vector<double> values(static_cast<size_t>(out.num_elements()),
                               -std::numeric_limits<double>::infinity());
    for_each_tap(window, x.shape(), out.shape(), [&](int64_t to, int64_t channel, int64_t, int64_t position) {
      if (position < 0) return;
      double& value = values[static_cast<size_t>(to)];
      value = max_double(value, xs[static_cast<size_t>(channel + position)]);
    });
    store_doubles(out, values);
    return;
  }
  const bool u = is_unsigned(x.dtype());
  const std::vector<int64_t> xs = to_ints(x);
  const int64_t lowest = u ? 0 : std::numeric_limits<int64_t>::min() >> (64 - dtype_info(x.dtype()).bits);
  std::vector<int64_t> values(static_cast<size_t>(out.num_elements()), lowest);
  for_each_tap(window, x.shape(), out.shape(), [&](int64_t to, int64_t channel, int64_t, int64_t position) {
    if (position < 0) return;
    int64_t& value = values[static_cast<size_t>(to)];
    const int64_t next = xs[static_cast<size_t>(channel + position)];
    value = int_less(value, next, u) ? next : value;
  });
  store_ints(out, values);
}

/// Number of taps of the window at output index `at` of dimension d that count: inside the input, or with
/// `include_pad` inside the padded input (a window of ceil_mode may reach past it).
int64_t counted_taps(const Window& window, size_t d, int64_t in, int64_t at, bool include_pad) {
  const int64_t low = include_pad ? -window.pads_begin[d] : 0;
  const ir::SymInt high = include_pad ? in + window.pads_end[d] : in;
  int64_t count = 0;
  for (int64_t k = 0; k < window.kernel[d]; ++k) {
    const int64_t i = at * window.strides[d] + k * window.dilations[d] - window.pads_begin[d];
    if (i >= low && i < high) ++count;
  }
  return count;
}

void reference_avg(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const Window window = pool_window(context.attrs);
  const bool include_pad = attr_bool(context.attrs, "count_include_pad", false);
  const std::vector<double> xs = to_doubles(x);
  std::vector<double> values(static_cast<size_t>(out.num_elements()), 0.0);
  for_each_tap(window, x.shape(), out.shape(), [&](int64_t to, int64_t channel, int64_t, int64_t position) {
    if (position >= 0) values[static_cast<size_t>(to)] += xs[static_cast<size_t>(channel + position)];
  });
  const Shape in = spatial_of(x.shape());
  for_each_index(out.shape(), [&](int64_t to, const Shape& index) {
    int64_t count = 1;
    for (size_t d = 0; d < window.rank(); ++d) {
      count *= counted_taps(window, d, in[d], index[d + 2], include_pad);
    }
    values[static_cast<size_t>(to)] /= static_cast<double>(std::max<int64_t>(count, 1));
  });
  store_doubles(out, values);
}

bool part(ir::PartContext& context) {
  const bool ceil_mode = attr_bool(context.attrs, "ceil_mode", false);
  // What counts ends with the input's own padding, which windows of ceil_mode may reach past.
  if (ceil_mode && attr_bool(context.attrs, "count_include_pad", false)) return false;
  if (context.wanted.axis == 1) return part_of_first(context);
  const bool is_windows = part_of_windows(context, pool_window(context.attrs));
  if (is_windows && context.wanted.axis > 1) context.changed.set("ceil_mode", int64_t{0});
  return is_windows;
}

/// x with padding wide enough for every tap of every window, by the same amount for every extent: windows
/// that start inside may reach past the end by less than a stride, where ceil_mode lets them.
te::Tensor pad_for(const ir::ComputeContext& context, const Window& window, const Expr& value) {
  const ir::SymShape& x = context.input_types[0].shape;
  const bool ceil_mode = attr_bool(context.attrs, "ceil_mode", false);
  const size_t spatial = map_axes(context.attrs, x.size()).spatial;
  ir::SymShape before(x.size(), 0), after(x.size(), 0);
  for (size_t d = 0; d < window.rank(); ++d) {
    before[d + spatial] = window.pads_begin[d];
    after[d + spatial] = window.pads_end[d] + (ceil_mode ? window.strides[d] - 1 : 0);
  }
  return padded_stage(context.name + "_pad", context.inputs[0], x, before, after, value);
}

/// The spatial dimensions of a window that leaves the last dimension of x alone: of channels last all of
/// them, of blocks of channels all but that last. 0: it leaves none alone.
size_t rank_beside_lanes(const ir::ComputeContext& context, const Window& window) {
  if (is_channels_last(context.attrs)) return window.rank();
  const size_t lanes = window.rank() - 1;
  const bool is_blocked = window.kernel[lanes] == 1 && window.strides[lanes] == 1 &&
                          window.pads_begin[lanes] == 0 && window.pads_end[lanes] == 0;
  return is_blocked ? lanes : 0;
}

/// Where lanes are side by side there is no padded copy: taps outside of the input are the neutral element,
/// with clamped indices, which the schedules turn into guards around the accumulation.
te::Tensor reduce_blocked(const ir::ComputeContext& context, const Window& window, te::ReduceOp op,
                          const Expr& neutral, DType dtype) {
  const ir::SymShape& x = context.input_types[0].shape;
  const ir::SymShape& out = context.output_types[0].shape;
  BlockedConv geometry;
  const size_t rank = rank_beside_lanes(context, window);
  const size_t first = map_axes(context.attrs, x.size()).spatial;
  geometry.in = extents_of(x, first, rank);
  geometry.out = extents_of(out, first, rank);
  geometry.window = window;
  const ir::SymShape taps =
      is_empty(x) ? ir::SymShape(rank, 0) : extents_of(ir::SymShape(window.kernel), 0, rank);
  return reduce_safe(
      context.name, op, out, taps, dtype, [&](const std::vector<Expr>& axes, const std::vector<Expr>& at) {
        const auto begin = axes.begin() + static_cast<std::ptrdiff_t>(first);
        const TapPosition position = tap_position(geometry, std::vector<Expr>(begin, axes.end() - 1), at);
        const std::vector<Expr> index =
            index_around(std::vector<Expr>(axes.begin(), begin), position.at, {axes.back()});
        const Expr value = widen(te::read(context.inputs[0], index));
        return position.inside ? te::select(position.inside, value, neutral) : value;
      });
}

te::Tensor reduce_windows(const ir::ComputeContext& context, const Window& window, te::ReduceOp op,
                          const te::Tensor& padded, DType dtype) {
  const size_t spatial = map_axes(context.attrs, context.output_types[0].shape.size()).spatial;
  return reduce_safe(context.name, op, context.output_types[0].shape, window.kernel, dtype,
                     [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps) {
                       std::vector<Expr> at = axes;
                       for (size_t d = 0; d < window.rank(); ++d) {
                         at[d + spatial] = axes[d + spatial] * Expr(window.strides[d]) +
                                           taps[d] * Expr(window.dilations[d]);
                       }
                       return narrow(te::read(padded, at), dtype);
                     });
}

TeOutputs compute_max(const ir::ComputeContext& context) {
  const Window window = pool_window(context.attrs);
  const ir::ValueType& out = context.output_types[0];
  const DType dtype = compute_dtype(out.dtype);
  const te::Tensor best = rank_beside_lanes(context, window) > 0
                              ? reduce_blocked(context, window, te::ReduceOp::kMax, lowest_of(dtype), dtype)
                              : reduce_windows(context, window, te::ReduceOp::kMax,
                                               pad_for(context, window, lowest_of(out.dtype)), dtype);
  return {narrow_stage(context.name + "_out", best, out.shape, out.dtype)};
}

/// counted_taps as an expression of the output index, of one form for every extent.
Expr count_expr(const Window& window, size_t d, const ir::SymInt& in, const Expr& at, bool include_pad,
                bool ceil_mode) {
  const int64_t low = include_pad ? -window.pads_begin[d] : 0;
  const ir::SymInt high = include_pad ? in + window.pads_end[d] : in;
  const bool never_before = -window.pads_begin[d] >= low;
  const bool never_after = !ceil_mode && (include_pad || window.pads_end[d] == 0);
  if (never_before && never_after) return Expr(window.kernel[d]);
  const Expr start = at * Expr(window.strides[d]) - Expr(window.pads_begin[d]);
  const Expr dilation(window.dilations[d]);
  // Taps k with low <= start + k * dilation < high.
  const Expr first = te::max(Expr(0), -te::floordiv(start - Expr(low), dilation));
  const Expr end = te::min(Expr(window.kernel[d]), te::floordiv(Expr(high - 1) - start, dilation) + Expr(1));
  return te::max(end - first, Expr(0));
}

TeOutputs compute_avg(const ir::ComputeContext& context) {
  const Window window = pool_window(context.attrs);
  const ir::ValueType& out = context.output_types[0];
  const ir::SymShape& x = context.input_types[0].shape;
  const bool include_pad = attr_bool(context.attrs, "count_include_pad", false);
  const bool ceil_mode = attr_bool(context.attrs, "ceil_mode", false);
  const DType dtype = compute_dtype(out.dtype);
  const size_t spatial = map_axes(context.attrs, x.size()).spatial;
  const te::Tensor sums =
      rank_beside_lanes(context, window) > 0
          ? reduce_blocked(context, window, te::ReduceOp::kSum, te::imm_like({dtype, 1}, 0), dtype)
          : reduce_windows(context, window, te::ReduceOp::kSum,
                           pad_for(context, window, te::imm_like({out.dtype, 1}, 0)), dtype);
  return {compute_safe(context.name + "_mean", out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    Expr count(1);
    for (size_t d = 0; d < window.rank(); ++d) {
      const size_t axis = d + spatial;
      count = count * count_expr(window, d, x[axis], axes[axis], include_pad, ceil_mode);
    }
    const Expr divisor = te::max(count, Expr(1));
    return narrow(te::read(sums, axes) / te::cast(dtype, divisor), out.dtype);
  })};
}

ir::OpDef pool_op() {
  ir::OpDef def;
  def.pattern = ir::Pattern::kComplex;
  def.part = &part_of_map<&part>;
  return def;
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef max = pool_op();
  max.name = "max_pool";
  max.infer = &infer_of_map<&infer_max>;
  max.reference = &reference_of_map<&reference_max>;
  max.compute = &compute_max;
  max.doc =
      "x [N,C,spatial...] (1 to 4 spatial dims): largest value of each window, NaN if it has one; attributes "
      "kernel (ints, required), strides, dilations (ints, 1), pads (ints, begins then ends, 0), ceil_mode "
      "(bool, 0), channels_last (bool, 0: x [N,spatial...,C])";
  ir::OpDef avg = pool_op();
  avg.name = "avg_pool";
  avg.tolerance = 1e-5;
  avg.infer = &infer_of_map<&infer_avg>;
  avg.reference = &reference_of_map<&reference_avg>;
  avg.compute = &compute_avg;
  avg.doc =
      "mean of each window; attributes as max_pool, and count_include_pad (bool, 0: padding does not count). "
      "A global pool is one whose kernel is the input";
  return {max, avg};
}

}  // namespace tensormill::ops::pool_ops
