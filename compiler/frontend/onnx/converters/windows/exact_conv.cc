// Convolutions of 8-bit integers by constant weights as convolutions in float32. Sums of integer products
// whose magnitudes add up to 2^24 at most are exact there, in any order: every partial sum is an integer that
// float32 holds. Input channels are cut into parts for which the weights' own magnitudes promise that.
#include <algorithm>
#include <cmath>

#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/quantized/quantize.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

constexpr double kExact = 16777216;  // 2^24
constexpr size_t kMostParts = 16;
/// Parts begin at whole vectors of channels where they can.
constexpr int64_t kAlignment = 16;

const Tensor* constant_of(NodeContext& context, ir::ValueId value) {
  const std::optional<Tensor>& constant = context.graph().value(value).constant;
  return constant ? &*constant : nullptr;
}

/// w - zero as float32; `zero` is one value or one an output channel.
std::optional<Tensor> centered_weights(NodeContext& context, ir::ValueId w, ir::ValueId zero) {
  const Tensor* weights = constant_of(context, w);
  const Tensor* zeros = zero == ir::kAbsent ? nullptr : constant_of(context, zero);
  if (weights == nullptr || dtype_info(weights->dtype()).bits > 8 || is_float(weights->dtype()) ||
      weights->shape().size() < 3 || weights->num_elements() == 0 ||
      (zero != ir::kAbsent && zeros == nullptr))
    return std::nullopt;
  const ir::SymInt outputs = weights->shape()[0], row = weights->num_elements() / outputs;
  if (zeros != nullptr && zeros->num_elements() != 1 && zeros->num_elements() != outputs) return std::nullopt;
  Tensor result(DType::kFloat32, weights->shape());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const ir::SymInt at = zeros == nullptr || zeros->num_elements() == 1 ? ir::SymInt(0) : i / row;
    const int64_t offset = zeros == nullptr ? 0 : zeros->element_as_int(at);
    result.set_element(i, static_cast<double>(weights->element_as_int(i) - offset));
  }
  return result;
}

/// The largest |x - zero|.
std::optional<double> largest_input(NodeContext& context, ir::ValueId x, ir::ValueId zero) {
  const DTypeInfo& info = dtype_info(context.type(x).dtype);
  if (info.is_float || info.bits > 8) return std::nullopt;
  const double low = info.is_signed ? -std::ldexp(1.0, info.bits - 1) : 0;
  const double high = std::ldexp(1.0, info.is_signed ? info.bits - 1 : info.bits) - 1;
  if (zero == ir::kAbsent) return std::max(high, -low);
  const Tensor* zeros = constant_of(context, zero);
  if (zeros == nullptr || zeros->num_elements() != 1) return high - low;
  const double offset = zeros->element_as_double(0);
  return std::max(std::abs(high - offset), std::abs(low - offset));
}

/// First input channels of the parts, and the number of channels at the end; empty when one channel alone
/// may pass the bound.
std::vector<int64_t> part_bounds(const Tensor& weights, double largest) {
  const ir::SymShape& shape = weights.shape();
  const ir::SymInt outputs = shape[0], inputs = shape[1], taps = weights.num_elements() / (outputs * inputs);
  const std::span<const float> values = weights.values<float>();
  std::vector<double> sums(static_cast<size_t>(outputs), 0);
  const auto magnitude = [&](int64_t out, int64_t in) {
    double sum = 0;
    for (int64_t tap = 0; tap < taps; ++tap)
      sum += std::abs(static_cast<double>(values[static_cast<size_t>((out * inputs + in) * taps + tap)]));
    return sum * largest;
  };
  std::vector<int64_t> bounds{0};
  for (int64_t in = 0; in < inputs; ++in) {
    bool fits = true;
    for (int64_t out = 0; out < outputs; ++out) {
      sums[static_cast<size_t>(out)] += magnitude(out, in);
      fits = fits && sums[static_cast<size_t>(out)] <= kExact;
    }
    if (fits) continue;
    const int64_t aligned = in / kAlignment * kAlignment;
    const int64_t next = aligned > bounds.back() ? aligned : in;
    if (next == bounds.back() || bounds.size() >= kMostParts) return {};
    bounds.push_back(next);
    std::fill(sums.begin(), sums.end(), 0);
    in = next - 1;
  }
  bounds.push_back(inputs);
  return bounds;
}

/// Input channels [first, last) of the weights.
Tensor weight_part(const Tensor& weights, int64_t first, int64_t last) {
  ir::SymShape shape = weights.shape();
  const ir::SymInt inputs = shape[1], taps = weights.num_elements() / (shape[0] * inputs);
  shape[1] = last - first;
  Tensor part(DType::kFloat32, shape);
  const std::span<const float> from = weights.values<float>();
  const std::span<float> to = part.values<float>();
  const int64_t row = (last - first) * taps;
  for (int64_t out = 0; out < shape[0]; ++out) {
    const auto source = from.begin() + (out * inputs + first) * taps;
    std::copy(source, source + row, to.begin() + out * row);
  }
  return part;
}

}  // namespace

ir::ValueId exact_convolution(NodeContext& context, ir::ValueId x, ir::ValueId x_zero, ir::ValueId w,
                              ir::ValueId w_zero) {
  Compose c(context);
  const std::optional<double> largest = largest_input(context, x, x_zero);
  const std::optional<Tensor> weights = largest ? centered_weights(context, w, w_zero) : std::nullopt;
  if (!weights) return ir::kAbsent;
  const std::vector<int64_t> bounds = part_bounds(*weights, *largest);
  const bool grouped = context.int_attr("group", 1) != 1;
  if (bounds.size() < 2 || (grouped && bounds.size() > 2)) return ir::kAbsent;
  const ir::ValueId zero = x_zero == ir::kAbsent ? x_zero : c.reshape(x_zero, {});
  const ir::ValueId data = centered(c, x, zero, DType::kFloat32);
  ir::ValueId sum = ir::kAbsent;
  for (size_t part = 0; part + 1 < bounds.size(); ++part) {
    const int64_t first = bounds[part], last = bounds[part + 1];
    const bool whole = bounds.size() == 2;
    const ir::ValueId channels = whole ? data : c.slice(data, 1, first, last - first);
    const ir::ValueId constant = context.constant(whole ? *weights : weight_part(*weights, first, last));
    const ir::ValueId exact =
        c.cast(convolution(context, channels, constant, ir::kAbsent, true), DType::kFloat64);
    sum = sum == ir::kAbsent ? exact : c.add(sum, exact);
  }
  return sum;
}

}  // namespace tensormill::frontend::onnx
