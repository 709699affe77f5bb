/// conv: convolution (cross-correlation) over 1 to 3 spatial dimensions.
#include "compiler/ops/windows/conv.h"

#include <algorithm>

#include "compiler/ops/gemm.h"
#include "compiler/ops/map_layout.h"
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/windows/window.h"

namespace tensormill::ops {

namespace {

/// The names of the sizes; x is [batch, groups*in_channels, spatial...], w [groups*out_channels, in_channels,
/// kernel...].
struct ConvShape {
  int64_t groups;
  int64_t in_channels;   ///< per group
  int64_t out_channels;  ///< per group
  Window window;
};

ConvShape read_shape(const ir::Attrs& attrs, const Shape& w) {
  ConvShape shape;
  shape.groups = attr_int(attrs, "group", 1);
  shape.in_channels = w[1];
  shape.out_channels = w[0] / shape.groups;
  shape.window = read_window(attrs, spatial_of(w));
  return shape;
}

/// Where the taps of one convolution fall: offsets into one input channel, or -1 in the padding.
class TapTable {
public:
  TapTable(const Window& window, const Shape& in, const Shape& out)
      : window_(window), in_(in), out_(out), points_(num_elements(out)) {
    const int64_t taps = num_elements(window.kernel);
    if (taps > kMaxEntries / std::max<int64_t>(points_, 1)) return;
    table_.resize(static_cast<size_t>(taps * points_));
    for (int64_t tap = 0; tap < taps; ++tap) fill(tap, 0, points_, table_.data() + tap * points_);
  }

  /// The positions of output points j0 .. j0+count of tap `tap` (a row-major index of the kernel), from the
  /// table or written to `scratch`.
  const int64_t* positions(int64_t tap, int64_t j0, int64_t count, std::vector<int64_t>& scratch) const {
    if (!table_.empty()) return table_.data() + tap * points_ + j0;
    scratch.resize(static_cast<size_t>(count));
    fill(tap, j0, count, scratch.data());
    return scratch.data();
  }
  int64_t points() const { return points_; }

private:
  static constexpr int64_t kMaxEntries = int64_t{1} << 22;

  /// Fills positions[j] for output points j0 .. j0+count of tap `tap` (a row-major index of the kernel).
  void fill(int64_t tap, int64_t j0, int64_t count, int64_t* positions) const {
    const size_t rank = window_.rank();
    int64_t offset[3] = {}, point[3] = {};
    for (size_t d = rank, rest = static_cast<size_t>(tap); d-- > 0;) {
      const size_t extent = static_cast<size_t>(window_.kernel[d]);
      offset[d] = static_cast<int64_t>(rest % extent) * window_.dilations[d] - window_.pads_begin[d];
      rest /= extent;
    }
    for (size_t d = rank, rest = static_cast<size_t>(j0); d-- > 0;) {
      point[d] = static_cast<int64_t>(rest % static_cast<size_t>(out_[d]));
      rest /= static_cast<size_t>(out_[d]);
    }
    for (int64_t j = 0; j < count; ++j) {
      int64_t position = 0;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = point[d] * window_.strides[d] + offset[d];
        position = position < 0 || at < 0 || at >= in_[d] ? -1 : position * in_[d] + at;
      }
      positions[j] = position;
      for (size_t d = rank; d-- > 0;) {
        if (++point[d] < out_[d]) break;
        point[d] = 0;
      }
    }
  }

  const Window& window_;
  const Shape& in_;
  Shape out_;
  int64_t points_;
  std::vector<int64_t> table_;
};

}  // namespace

std::vector<ir::ValueType> infer_conv(const ir::InferContext& context) {
  const int64_t groups = check_conv_operands(context);
  const ir::ValueType &x = input(context, 0), &w = input(context, 1);
  if (!demand_divisible(w.shape[0], groups)) {
    fail(std::to_string(w.shape[0]) + " output channels do not divide into " + std::to_string(groups) +
         " groups");
  }
  int64_t wanted = 0;
  if (__builtin_mul_overflow(w.shape[1].hint(), groups, &wanted)) fail("attribute group is too large");
  if (!demand(ir::Relation::kEqual, x.shape[1], w.shape[1] * groups)) {
    fail("the input has " + std::to_string(x.shape[1]) + " channels, the weights take " +
         std::to_string(wanted) + ": " + std::to_string(w.shape[1]) + " for each of " +
         std::to_string(groups) + " groups");
  }
  if (has_input(context, 2)) {
    const ir::ValueType& bias = input_like_first(context, 2);
    if (!demand_equal(bias.shape, {w.shape[0]})) {
      fail("the bias has shape " + to_string(bias.shape) + ", expected [" + std::to_string(w.shape[0]) + "]");
    }
  }
  const SymWindow window = read_window(context.attrs, spatial_of(w.shape));
  ir::SymShape out = window_output(window, spatial_of(x.shape), false);
  out.insert(out.begin(), {x.shape[0], w.shape[0]});
  return {made_type(x.dtype, out)};
}

int64_t check_conv_operands(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kFloats);
  const ir::ValueType& w = input_like_first(context, 1);
  const size_t rank = x.shape.size();
  if (rank < 3 || rank > 5) fail("input 0 has rank " + std::to_string(rank) + ", expected 3 to 5");
  if (w.shape.size() != rank) {
    fail("the weights have rank " + std::to_string(w.shape.size()) + ", the input has rank " +
         std::to_string(rank));
  }
  const int64_t groups = attr_int(context.attrs, "group", 1);
  if (groups < 1) fail("attribute group is " + std::to_string(groups) + ", expected at least 1");
  return groups;
}

void conv_reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Tensor& w = *context.inputs[1];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const ConvShape shape = read_shape(context.attrs, w.shape());
  const Shape spatial = spatial_of(x.shape());
  const bool biased = context.inputs.size() > 2 && context.inputs[2] != nullptr;
  const std::vector<double> bias =
      biased ? to_doubles(*context.inputs[2]) : std::vector<double>(static_cast<size_t>(w.shape()[0]), 0.0);
  const TapTable taps(shape.window, spatial, spatial_of(out.shape()));
  const std::vector<double> xs = to_doubles(x);
  const std::vector<double> ws = to_doubles(w);
  std::vector<double> values(static_cast<size_t>(out.num_elements()));
  const int64_t kernel_size = num_elements(shape.window.kernel);
  const int64_t channel_size = num_elements(spatial);
  GemmOperands gemm;
  gemm.rows = shape.out_channels;
  gemm.columns = taps.points();
  gemm.depth = shape.in_channels * kernel_size;
  std::vector<int64_t> scratch;
  for (int64_t image = 0; image < x.shape()[0] * shape.groups; ++image) {
    const int64_t group = image % shape.groups;
    const double* channels = xs.data() + image * shape.in_channels * channel_size;
    const double* weights = ws.data() + group * shape.out_channels * gemm.depth;
    double* target = values.data() + image * shape.out_channels * gemm.columns;
    gemm.fill_row = [&](int64_t row, int64_t k0, int64_t count, double* block) {
      std::copy_n(weights + row * gemm.depth + k0, count, block);
    };
    gemm.fill_column_block = [&](int64_t k, int64_t j0, int64_t count, double* block) {
      const int64_t* positions = taps.positions(k % kernel_size, j0, count, scratch);
      const double* channel = channels + k / kernel_size * channel_size;
      for (int64_t j = 0; j < count; ++j) {
        const int64_t position = positions[j];
        block[j] = position < 0 ? 0.0 : channel[position];
      }
    };
    gemm.take = [&](int64_t row, int64_t j0, int64_t count, const double* sums) {
      const double shift = bias[static_cast<size_t>(group * shape.out_channels + row)];
      for (int64_t j = 0; j < count; ++j) target[row * gemm.columns + j0 + j] = sums[j] + shift;
    };
    gemm_double(gemm);
  }
  store_doubles(out, values);
}

bool part_of_conv(ir::PartContext& context) {
  return part_of_windows(context, read_window(context.attrs, Shape(spatial_of(context.inputs[1]->shape))));
}

TeOutputs compute_conv(const ir::ComputeContext& context) {
  const ir::SymShape& x = context.input_types[0].shape;
  const ir::ValueType& out = context.output_types[0];
  const ir::SymShape w = weights_first(context.attrs, MapWeights::kConv, context.input_types[1].shape);
  const int64_t groups = attr_int(context.attrs, "group", 1);
  const ir::SymInt &in_channels = w[1], out_channels = floordiv(w[0], groups);
  const SymWindow window = read_window(context.attrs, spatial_of(w));
  const size_t rank = window.rank();
  const MapAxes map = map_axes(context.attrs, x.size());
  const bool last = is_channels_last(context.attrs);
  ir::SymShape before(x.size(), 0), after(x.size(), 0);
  for (size_t d = 0; d < rank; ++d) {
    before[d + map.spatial] = window.pads_begin[d];
    after[d + map.spatial] = window.pads_end[d];
  }
  const te::Tensor padded = padded_stage(context.name + "_pad", context.inputs[0], x, before, after,
                                         te::imm_like({out.dtype, 1}, 0));
  // In the order of the weights, whose channels are the inner ones where they stand last.
  ir::SymShape reduced = window.kernel;
  reduced.insert(last ? reduced.end() : reduced.begin(), in_channels);
  const size_t channel_tap = last ? rank : 0, first_tap = last ? 0 : 1;
  const DType accumulate = compute_dtype(out.dtype);
  const te::Tensor sums =
      reduce_safe(context.name, te::ReduceOp::kSum, out.shape, reduced, accumulate,
                  [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps) {
                    Expr channel = taps[channel_tap];
                    if (groups > 1) {
                      const Expr group = te::floordiv(axes[map.channel], Expr(out_channels));
                      channel = is_one(in_channels) ? group : group * Expr(in_channels) + channel;
                    }
                    std::vector<Expr> at = axes, weight(taps.begin(), taps.end());
                    at[map.channel] = channel;
                    for (size_t d = 0; d < rank; ++d)
                      at[d + map.spatial] = axes[d + map.spatial] * Expr(window.strides[d]) +
                                            taps[d + first_tap] * Expr(window.dilations[d]);
                    weight.insert(last ? weight.end() : weight.begin(), axes[map.channel]);
                    return widen(te::read(padded, at)) * widen(te::read(context.inputs[1], weight));
                  });
  return {with_channel_bias(context, sums)};
}

te::Tensor with_channel_bias(const ir::ComputeContext& context, const te::Tensor& sums) {
  const ir::ValueType& out = context.output_types[0];
  if (context.inputs.size() < 3 || context.inputs[2] == nullptr) {
    return narrow_stage(context.name + "_out", sums, out.shape, out.dtype);
  }
  const size_t channel = map_axes(context.attrs, out.shape.size()).channel;
  return compute_safe(context.name + "_bias", out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    return narrow(te::read(sums, axes) + widen(te::read(context.inputs[2], {axes[channel]})), out.dtype);
  });
}

namespace conv_ops {

std::vector<ir::OpDef> family();

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "conv";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  def.tolerance = 1e-5;
  def.infer = &infer_of_map<&infer_conv, MapWeights::kConv>;
  def.reference = &reference_of_map<&conv_reference, MapWeights::kConv>;
  def.part = &part_of_map<&part_of_conv, MapWeights::kConv>;
  def.compute = &compute_conv;
  def.doc =
      "inputs x [N,C,spatial...] (1 to 3 spatial dims), w [M,C/group,kernel...], bias [M] (optional); "
      "attributes strides, dilations (ints, 1), pads (ints, begins then ends, 0), group (int, 1), exact "
      "(bool, 0: the sums are integers that the type holds, and must stay so), channels_last (bool, 0: x "
      "[N,spatial...,C], w [kernel...,C/group,M])";
  return {def};
}

}  // namespace conv_ops

}  // namespace tensormill::ops
