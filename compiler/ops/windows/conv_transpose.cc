/// conv_transpose: transposed convolution (the gradient of conv) over 1 to 3 spatial dimensions.
#include "compiler/ops/map_layout.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/windows/conv.h"
#include "compiler/ops/windows/window.h"

namespace tensormill::ops::conv_transpose_ops {

std::vector<ir::OpDef> family();

namespace {

ir::SymShape output_extents(const ir::Attrs& attrs, const SymWindow& window, const ir::SymShape& in) {
  const ir::Ints extra = attr_ints(attrs, "output_padding", window.rank(), 0, 0, kMaxWindow);
  ir::SymShape out;
  for (size_t d = 0; d < window.rank(); ++d) {
    if (!demand(ir::Relation::kLessEqual, 1, in[d]))
      fail("spatial dimension " + std::to_string(d) + " has extent 0, expected at least 1");
    int64_t reached = 0;
    if (__builtin_mul_overflow(in[d].hint() - 1, window.strides[d], &reached) || reached > kMaxTensorBytes) {
      fail("spatial dimension " + std::to_string(d) + " with extent " + std::to_string(in[d]) +
           " and stride " + std::to_string(window.strides[d]) + " is too large");
    }
    const ir::SymInt extent = (in[d] - 1) * window.strides[d] + extra[d] + window.reach(d) -
                              window.pads_begin[d] - window.pads_end[d];
    if (!demand(ir::Relation::kLessEqual, 1, extent)) {
      fail("the pads leave extent " + to_string(extent) + " of spatial dimension " + std::to_string(d) +
           ", expected at least 1");
    }
    out.push_back(extent);
  }
  return out;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const int64_t groups = check_conv_operands(context);
  const ir::ValueType &x = input(context, 0), &w = input(context, 1);
  if (!demand(ir::Relation::kEqual, x.shape[1], w.shape[0])) {
    fail("the input has " + std::to_string(x.shape[1]) + " channels, the weights take " +
         std::to_string(w.shape[0]));
  }
  if (!demand_divisible(x.shape[1], groups)) {
    fail(std::to_string(x.shape[1]) + " channels do not divide into " + std::to_string(groups) + " groups");
  }
  int64_t most = 0;
  if (__builtin_mul_overflow(w.shape[1].hint(), groups, &most)) fail("attribute group is too large");
  const ir::SymInt channels = w.shape[1] * groups;
  if (has_input(context, 2) && !demand_equal(input_like_first(context, 2).shape, {channels})) {
    fail("the bias has shape " + to_string(input(context, 2).shape) + ", expected [" + to_string(channels) +
         "]");
  }
  const SymWindow window = read_window(context.attrs, spatial_of(w.shape));
  ir::SymShape out = output_extents(context.attrs, window, spatial_of(x.shape));
  out.insert(out.begin(), {x.shape[0], channels});
  return {made_type(x.dtype, out)};
}

/// Adds one input channel times one kernel to one output channel.
void scatter(const Window& window, const Shape& in, const Shape& out, const double* x, const double* w,
             double* y) {
  for_each_index(in, [&](int64_t point, const Shape& at) {
    for_each_index(window.kernel, [&](int64_t tap, const Shape& offset) {
      int64_t position = 0;
      for (size_t d = 0; d < window.rank(); ++d) {
        const int64_t i = at[d] * window.strides[d] + offset[d] * window.dilations[d] - window.pads_begin[d];
        position = position < 0 || i < 0 || i >= out[d] ? -1 : position * out[d] + i;
      }
      if (position >= 0) y[position] += x[point] * w[tap];
    });
  });
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Tensor& w = *context.inputs[1];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const Window window = read_window(context.attrs, spatial_of(w.shape()));
  const int64_t groups = attr_int(context.attrs, "group", 1);
  const int64_t in_channels = x.shape()[1] / groups, out_channels = w.shape()[1];
  const Shape in = spatial_of(x.shape()), spatial = spatial_of(out.shape());
  const int64_t in_size = num_elements(in), out_size = num_elements(spatial);
  const int64_t kernel_size = num_elements(window.kernel);
  const std::vector<double> xs = to_doubles(x), ws = to_doubles(w);
  std::vector<double> values(static_cast<size_t>(out.num_elements()), 0.0);
  for (int64_t image = 0; image < x.shape()[0]; ++image) {
    for (int64_t c = 0; c < x.shape()[1]; ++c) {
      for (int64_t m = 0; m < out_channels; ++m) {
        const int64_t channel = c / in_channels * out_channels + m;
        scatter(window, in, spatial, xs.data() + (image * x.shape()[1] + c) * in_size,
                ws.data() + (c * out_channels + m) * kernel_size,
                values.data() + (image * out.shape()[1] + channel) * out_size);
      }
    }
  }
  if (context.inputs.size() > 2 && context.inputs[2] != nullptr) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] += context.inputs[2]->element_as_double(static_cast<int64_t>(i) / out_size % out.shape()[1]);
    }
  }
  store_doubles(out, values);
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::SymShape& x = context.input_types[0].shape;
  const ir::SymShape w = weights_first(context.attrs, MapWeights::kTransposed, context.input_types[1].shape);
  const ir::ValueType& out = context.output_types[0];
  const SymWindow window = read_window(context.attrs, spatial_of(w));
  const MapAxes map = map_axes(context.attrs, x.size());
  const bool last = is_channels_last(context.attrs);
  const int64_t groups = attr_int(context.attrs, "group", 1);
  const ir::SymInt in_channels = floordiv(w[0], groups);
  ir::SymShape reduced = {in_channels};
  reduced.insert(reduced.end(), window.kernel.begin(), window.kernel.end());
  const te::Tensor sums = reduce_safe(
      context.name, te::ReduceOp::kSum, out.shape, reduced, compute_dtype(out.dtype),
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& taps) {
        const bool grouped = groups > 1;
        const Expr& made = axes[map.channel];
        const Expr group = grouped ? te::floordiv(made, Expr(w[1])) : Expr(0);
        const Expr channel = grouped ? group * Expr(in_channels) + taps[0] : taps[0];
        std::vector<Expr> at = axes, weight(taps.begin() + 1, taps.end());
        at[map.channel] = channel;
        const Expr row[] = {channel, grouped ? te::floormod(made, Expr(w[1])) : made};
        weight.insert(last ? weight.end() : weight.begin(), std::begin(row), std::end(row));
        Expr hit = te::bool_imm(true);
        for (size_t d = 0; d < window.rank(); ++d) {
          const size_t axis = d + map.spatial;
          const Expr scaled =
              axes[axis] + Expr(window.pads_begin[d]) - taps[d + 1] * Expr(window.dilations[d]);
          const Expr stride(window.strides[d]);
          const Expr source = te::floordiv(scaled, stride);
          hit = te::logical_and(
              hit, te::logical_and(te::floormod(scaled, stride) == Expr(0), in_range(source, x[axis])));
          at[axis] = clamp_index(source, x[axis]);
        }
        const Expr value = widen(te::read(context.inputs[0], at));
        const Expr product = value * widen(te::read(context.inputs[1], weight));
        return te::select(hit, product, constant_like(product, 0));
      });
  return {with_channel_bias(context, sums)};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "conv_transpose";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  def.tolerance = 1e-5;
  def.infer = &infer_of_map<&infer, MapWeights::kTransposed>;
  def.reference = &reference_of_map<&reference, MapWeights::kTransposed>;
  def.compute = &compute;
  def.doc =
      "inputs x [N,C,spatial...] (1 to 3 spatial dims), w [C,M/group,kernel...], bias [M] (optional); "
      "attributes strides, dilations (ints, 1), pads (ints, begins then ends, 0), output_padding (ints, 0), "
      "group (int, 1), channels_last (bool, 0: x [N,spatial...,C], w [kernel...,C,M/group]); output extent "
      "(in-1)*stride + output_padding + reach - pads";
  return {def};
}

}  // namespace tensormill::ops::conv_transpose_ops
