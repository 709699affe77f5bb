// Convolutions, products, pools and means of int8 as the reference kernels compute them: sums in int32, and
// one multiplication in fixed point.
#include <algorithm>
#include <cmath>

#include "compiler/build/moves/moves.h"
#include "compiler/frontend/tflite/converters/exact.h"
#include "compiler/frontend/tflite/converters/windows.h"

namespace tensormill::frontend::tflite {

namespace {

constexpr double kExactInFloat = 16777216;  // 2^24

/// The scales of filters of int8, which have no zero points.
Floats filter_scales(const NodeContext& node, int64_t outputs) {
  const Tensor& filters = node.input_tensor(1);
  const Quantization& from = filters.quantization;
  if (filters.type != TensorType::kInt8 || !filters.is_constant || from.scale.empty() ||
      from.details.index() != 0)
    node.unsupported("quantized exact", "filters that are no constants of int8 have no exact form");
  if (std::any_of(from.zero_point.begin(), from.zero_point.end(), [](int64_t zero) { return zero != 0; }))
    node.unsupported("quantized exact", "filters of int8 with zero points have no exact form");
  if (from.scale.size() != 1 && static_cast<int64_t>(from.scale.size()) != outputs)
    node.invalid(std::to_string(from.scale.size()) + " scales of " + std::to_string(outputs) + " filters");
  return from.scale;
}

/// Whether float32 holds the sums of these filters' products with a byte less its zero point.
bool fits_float(const ::tensormill::Tensor& filters, int64_t outputs) {
  const int64_t row = outputs == 0 ? 0 : filters.num_elements() / outputs;
  for (int64_t out = 0; out < outputs; ++out) {
    double sum = 0;
    for (int64_t i = 0; i < row; ++i) sum += std::abs(filters.element_as_double(out * row + i));
    if (sum * 255 > kExactInFloat) return false;
  }
  return true;
}

/// The bias, of int32, in float64 along `shape`; kAbsent where there is none.
V bias_along(NodeContext& node, const ir::SymShape& shape) {
  if (!node.has_input(2)) return ir::kAbsent;
  if (node.input_tensor(2).type != TensorType::kInt32)
    node.unsupported("quantized exact", "a bias that is not int32 has no exact form");
  Compose c(node);
  return c.reshape(c.cast(node.stored(2), DType::kFloat64), shape);
}

}  // namespace

void convert_exact_conv(NodeContext& node) {
  ExactNode exact(node);
  if (node.rank(node.stored(0)) != 4) node.invalid("the input is no map of 4 axes");
  const Int8Scale from = exact.input(0), to = exact.output();
  const V map = node.first(node.stored(0));
  ConvForm form = conv_form(node, map);
  const int64_t outputs = form.weights[0];
  const Floats scales = filter_scales(node, outputs);
  const ::tensormill::Tensor filters = node.arranged(1, form.perm, form.weights);
  Compose& c = exact.c;
  // Sums that are integers in float32 or float64 are computed on the bytes where the target can (passes).
  const DType wide = fits_float(filters, outputs) ? DType::kFloat32 : DType::kFloat64;
  form.spec.exact = true;
  const V data = from.zero == 0 ? c.cast(map, wide) : c.minus(c.cast(map, wide), from.zero);
  const V sums = build::conv(node, data, c.cast(node.constant(filters), wide), ir::kAbsent, form.spec);
  V all = c.cast(sums, DType::kFloat64);
  if (const V bias = bias_along(node, {1, outputs, 1, 1}); bias != ir::kAbsent) all = c.add(all, bias);
  std::vector<build::FixedMultiplier> factors;
  for (const float scale : scales)
    factors.push_back(build::fixed_multiplier(static_cast<double>(from.scale) * static_cast<double>(scale) /
                                              static_cast<double>(to.scale)));
  const Shape along = factors.size() == 1 ? Shape{} : Shape{1, outputs, 1, 1};
  exact.set(node.last(exact.fixed.multiplied(all, factors, along)), form.activation);
}

// One scale of all filters is multiplied with that of the data in float32. What is multiplied is rounded
// once.
void convert_exact_fully_connected(NodeContext& node) {
  ExactNode exact(node);
  const Int8Scale from = exact.input(0), to = exact.output();
  Compose& c = exact.c;
  const V bytes = c.cast(node.stored(0), DType::kInt32);
  const Rows rows = rows_of(node, from.zero == 0 ? bytes : c.minus(bytes, from.zero));
  const int64_t outputs = rows.weights[1];
  const Floats scales = filter_scales(node, outputs);
  const V filters = c.cast(node.constant(node.arranged(1, {1, 0}, rows.weights)), DType::kInt32);
  V all = c.cast(c.matmul(rows.x, filters), DType::kFloat64);
  if (const V bias = bias_along(node, {outputs}); bias != ir::kAbsent) all = c.add(all, bias);
  std::vector<build::FixedMultiplier> factors;
  for (const float scale : scales) {
    const double product = scales.size() == 1 ? static_cast<double>(from.scale * scale)
                                              : static_cast<double>(from.scale) * static_cast<double>(scale);
    factors.push_back(build::fixed_multiplier(product / static_cast<double>(to.scale)));
  }
  const Shape along = factors.size() == 1 ? Shape{} : Shape{outputs};
  for (const build::FixedMultiplier& each : factors) {
    if (each.shift > build::kMostShiftOnce)
      node.unsupported("quantized exact", "the output's scale is too small for an exact form");
  }
  exact.set(exact.fixed.multiplied_once(all, factors, along), rows.activation);
}

namespace {

void check_one_scale(const NodeContext& node, size_t index) {
  if (!node.has_output_scale(index))
    node.unsupported("quantized exact", "another scale of operand " + std::to_string(index) +
                                            " than of the output has no exact form");
}

}  // namespace

// The mean of the cells inside, without a zero point, ties away from zero.
void convert_exact_average_pool(NodeContext& node) {
  ExactNode exact(node);
  check_one_scale(node, 0);
  if (node.rank(node.stored(0)) != 4) node.invalid("the input is no map of 4 axes");
  Compose& c = exact.c;
  const V map = c.cast(node.first(node.stored(0)), DType::kFloat64);
  const build::PoolSpec spec = pool_over(node, map);
  const V mean = build::avg_pool(node, map, spec);
  // The mean of float64 is off by far less than what lies between a quotient of such integers and a tie.
  constexpr double kSteps = 1 << 30;
  const V settled = c.times(c.unary("round", c.times(mean, kSteps)), 1 / kSteps);
  const ExactNode::Range kept = exact.range(node.options<Pool2DOptions>().fused_activation_function);
  exact.output();
  node.set_stored(0,
                  node.last(c.cast(c.clip(exact.fixed.rounded(settled), kept.low, kept.high), DType::kInt8)));
}

void convert_exact_max_pool(NodeContext& node) {
  ExactNode exact(node);
  check_one_scale(node, 0);
  if (node.rank(node.stored(0)) != 4) node.invalid("the input is no map of 4 axes");
  const V map = node.first(node.stored(0));
  const ExactNode::Range kept = exact.range(node.options<Pool2DOptions>().fused_activation_function);
  const V largest = build::max_pool(node, map, pool_over(node, map));
  const bool is_whole = kept.low == -128 && kept.high == 127;
  node.set_stored(0, node.last(is_whole ? largest : exact.c.clip(largest, kept.low, kept.high)));
}

namespace {

/// By how much the sum of `count` elements is multiplied for their mean: the quotient is in the multiplier.
build::FixedMultiplier mean_factor(build::FixedMultiplier factor, int64_t count) {
  int shift = std::min(63 - __builtin_clzll(static_cast<uint64_t>(count)), 32);
  shift = std::min(shift, 31 + factor.shift);
  return {static_cast<int32_t>((int64_t{factor.value} << shift) / count), factor.shift - shift};
}

}  // namespace

void convert_exact_mean(NodeContext& node) {
  ExactNode exact(node);
  const Int8Scale from = exact.input(0), to = exact.output();
  const V x = exact.centered(0);
  ir::Ints axes = node.known_ints(1, "axis");
  for (int64_t& axis : axes) axis = node.normalize_axis(axis, node.rank(x));
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  int64_t count = 1;
  for (const int64_t axis : axes) {
    const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
    if (!extent.is_constant())
      node.unsupported("quantized exact", "means along a free dim have no exact form");
    if (__builtin_mul_overflow(count, extent.hint(), &count) || count > int64_t{1} << 23)
      node.unsupported("quantized exact", "a mean of more than 2^23 elements has no exact form");
  }
  if (count == 0) node.unsupported("quantized exact", "a mean of nothing has no exact form");
  const build::FixedMultiplier factor = mean_factor(
      build::fixed_multiplier(static_cast<double>(from.scale) / static_cast<double>(to.scale)), count);
  const V sums =
      build::reduced(node, node.maps(), "reduce_sum", x, axes, node.options<ReducerOptions>().keep_dims);
  exact.set(node.pointwise(sums, [&](V all) { return exact.fixed.multiplied(all, {factor}); }));
}

}  // namespace tensormill::frontend::tflite
