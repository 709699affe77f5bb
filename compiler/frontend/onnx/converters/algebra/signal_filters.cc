// Windows of a transform, and the filters on the mel scale that its result is weighed by.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

constexpr int64_t kMaxMatrix = int64_t{1} << 24;

/// Of the result of windows and filters.
DType output_datatype(const NodeContext& context) {
  return context.has_attr("output_datatype") ? context.dtype_attr("output_datatype") : DType::kFloat32;
}

/// The window of as many elements as a run says.
V dynamic_window(NodeContext& context, double a0, double a1, double a2, bool is_periodic) {
  Compose c(context);
  const ir::SymInt size = run_extent(context, one_integer(context, 0, "size"), kMaxLength, "size");
  const V count = context.extents({size}), period = is_periodic ? count : c.minus(count, 1);
  const V n = c.cast(c.iota(size), DType::kFloat64);
  const V angle = c.div(c.times(n, 2 * std::numbers::pi), c.cast(period, DType::kFloat64));
  const V first = c.times(c.unary("cos", angle), -a1),
          second = c.times(c.unary("cos", c.times(angle, 2)), a2);
  return c.cast(c.plus(c.add(first, second), a0), output_datatype(context));
}

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N); N is the size, or one less when the window is symmetric: of
/// one element that is 0, and the element NaN, as the functions that define the operators have it.
void add_window(NodeContext& context, double a0, double a1, double a2) {
  const bool is_periodic = context.int_attr("periodic", 1) != 0;
  if (is_run_time_value(context, 0)) {
    context.set_output(0, dynamic_window(context, a0, a1, a2, is_periodic));
    return;
  }
  const int64_t size = known_length(context, 0, "size");
  const int64_t period = is_periodic ? size : size - 1;
  std::vector<double> values;
  for (int64_t n = 0; n < size; ++n) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(n) / static_cast<double>(period);
    values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  context.set_output(0, Compose(context).doubles(output_datatype(context), values, {size}));
}

/// The filters of as many bins, and of so long a transform, as a run says.
V dynamic_mel_weights(NodeContext& context) {
  Compose c(context);
  const V one = c.ints({1}, {1}), zero = c.ints({0}, {1});
  V length = one_integer(context, 1, "dft_length");
  if (is_run_time_value(context, 1)) {
    length = checked_number(context, length, is_within(context, length, 0, static_cast<double>(kMaxLength)),
                            "dft_length is {}, expected 0 to " + std::to_string(kMaxLength));
  } else {
    length = c.dims({known_length(context, 1, "dft_length")}, {1});
  }
  const auto real = [&](size_t index, const char* what) {
    return c.cast(one_number(context, index, what), DType::kFloat64);
  };
  const V low = real(3, "lower_edge_hertz"), high = real(4, "upper_edge_hertz");
  V rate = real(2, "sample_rate");
  rate = checked_number(context, rate, c.binary("greater", rate, c.number(rate, 0)),
                        "sample_rate is {}, expected above 0");
  const ir::SymInt bins =
      run_extent(context, one_integer(context, 0, "num_mel_bins"), kMaxLength, "num_mel_bins");
  const ir::SymInt rows =
      context.symbolic_ints(c.add(c.div(length, c.ints({2}, {1})), one), "dft_length", 1).at(0);
  const auto to_mel = [&](V hertz) {
    return c.times(c.unary("log", c.plus(c.times(hertz, 1.0 / 700), 1)), 2595 / std::log(10.0));
  };
  const V first = to_mel(low), span = c.sub(to_mel(high), first);
  const V at = c.cast(c.iota(bins + 2), DType::kFloat64);
  const V mel = c.add(c.div(c.mul(at, span), c.extent(span, bins + 2)), first);
  const V hertz = c.times(c.minus(c.unary("exp", c.times(mel, std::log(10.0) / 2595)), 1), 700);
  const V place = c.unary("floor", c.div(c.mul(c.cast(c.add(length, one), DType::kFloat64), hertz), rate));
  const V edges =
      c.binary("min", c.binary("max", c.cast(place, DType::kInt64), zero), context.extents({rows - 1}));
  const V left = c.slice(edges, 0, 0, bins), middle = c.slice(edges, 0, 1, bins),
          right = c.slice(edges, 0, 2, bins);
  const V row = c.iota(rows, {rows, 1});
  const auto part = [&](V from, V to, V extent) {
    return c.div(c.cast(c.sub(to, from), DType::kFloat64),
                 c.cast(c.binary("max", extent, one), DType::kFloat64));
  };
  const V rising = part(left, row, c.sub(middle, left)), falling = part(row, right, c.sub(right, middle));
  const V is_rising = c.binary("and", c.binary("less_equal", left, row), c.binary("less_equal", row, middle));
  const V is_falling = c.binary("and", c.binary("less_equal", middle, row), c.binary("less", row, right));
  const V is_peak = c.binary("and", c.binary("equal", left, middle), c.binary("equal", row, middle));
  V weights = c.where(is_rising, rising, c.number(rising, 0));
  weights = c.where(is_peak, c.number(weights, 1), weights);
  return c.cast(c.where(is_falling, falling, weights), output_datatype(context));
}

}  // namespace

void convert_hann_window(NodeContext& context) { add_window(context, 0.5, 0.5, 0); }
void convert_hamming_window(NodeContext& context) { add_window(context, 25.0 / 46, 21.0 / 46, 0); }
void convert_blackman_window(NodeContext& context) { add_window(context, 0.42, 0.5, 0.08); }

// Triangular filters that are equally spaced on the mel scale 2595 log10(1 + f / 700).
void convert_mel_weight_matrix(NodeContext& context) {
  for (size_t index = 0; index < context.num_inputs(); ++index) {
    if (!is_run_time_value(context, index)) continue;
    context.set_output(0, dynamic_mel_weights(context));
    return;
  }
  const int64_t bins = known_length(context, 0, "num_mel_bins");
  const int64_t length = known_length(context, 1, "dft_length");
  const double rate = context.known_scalar(2, "sample_rate").element_as_double(0);
  const double low = context.known_scalar(3, "lower_edge_hertz").element_as_double(0);
  const double high = context.known_scalar(4, "upper_edge_hertz").element_as_double(0);
  const int64_t rows = length / 2 + 1;
  if (context.product(rows, bins) > kMaxMatrix || !(rate > 0)) context.invalid("the matrix is too large");
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double mel =
        to_mel(low) + static_cast<double>(i) * (to_mel(high) - to_mel(low)) / static_cast<double>(bins + 2);
    const double hertz = 700 * (std::pow(10.0, mel / 2595) - 1);
    edges.push_back(std::clamp<int64_t>(
        static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate)), 0, rows - 1));
  }
  std::vector<double> weights(static_cast<size_t>(rows * bins), 0);
  const auto at = [&](int64_t row, int64_t bin) -> double& {
    return weights[static_cast<size_t>(row * bins + bin)];
  };
  for (int64_t bin = 0; bin < bins; ++bin) {
    const int64_t left = edges[static_cast<size_t>(bin)], middle = edges[static_cast<size_t>(bin) + 1];
    const int64_t right = edges[static_cast<size_t>(bin) + 2];
    if (left == middle) at(middle, bin) = 1;
    for (int64_t row = left; row <= middle && left != middle; ++row)
      at(row, bin) = static_cast<double>(row - left) / static_cast<double>(middle - left);
    for (int64_t row = middle; row < right; ++row)
      at(row, bin) = static_cast<double>(right - row) / static_cast<double>(right - middle);
  }
  context.set_output(0, Compose(context).doubles(output_datatype(context), weights, {rows, bins}));
}

}  // namespace tensormill::frontend::onnx
