#include "compiler/build/pictures/resize_taps.h"

#include <algorithm>
#include <cmath>

namespace tensormill::build {

namespace {

/// Input position of output element x. Of numbers of type T: which element is the nearest to a position
/// between two hangs on the rounding, and other runtimes compute it in float32.
template <typename T>
T position_of(const ResizeAxis& axis, const std::string& mode, T x) {
  const T in = static_cast<T>(int64_t{axis.in}), half = static_cast<T>(0.5);
  const T scale = axis.by_size ? static_cast<T>(int64_t{axis.out}) / in : static_cast<T>(axis.scale);
  const T out = axis.by_size ? static_cast<T>(int64_t{axis.out}) : in * scale;
  if (mode == "align_corners") return out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (mode == "asymmetric") return x / scale;
  if (mode == "tf_half_pixel_for_nn") return (x + half) / scale;
  if (mode == "tf_crop_and_resize") {
    const T start = static_cast<T>(axis.roi_start), span = static_cast<T>(axis.roi_end - axis.roi_start);
    return start * (in - 1) + (out == 1 ? half : x / (out - 1)) * span * (in - 1);
  }
  if (mode == "pytorch_half_pixel" && axis.out == 1) return 0;
  const T position = (x + half) / scale - half;
  if (mode != "half_pixel_symmetric") return position;
  const T adjustment = static_cast<T>(int64_t{axis.out}) / out;
  return in / 2 * (1 - adjustment) + position;
}

double source_position(const ResizeAxis& axis, const ResizeOptions& options, int64_t x) {
  const std::string& mode = options.coordinates;
  return options.mode == "nearest" ? static_cast<double>(position_of(axis, mode, static_cast<float>(x)))
                                   : position_of(axis, mode, static_cast<double>(x));
}

int64_t nearest_element(const std::string& mode, double position) {
  if (mode == "floor") return static_cast<int64_t>(std::floor(position));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(position));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(position + 0.5));
  return static_cast<int64_t>(std::ceil(position - 0.5));
}

double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

/// The cubic convolution kernel with parameter a (Keys 1981).
double keys(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

}  // namespace

ResizeReach::ResizeReach(const ResizeAxis& axis, const ResizeOptions& options) {
  if (options.mode == "nearest") return;
  shrink = options.antialias ? std::min(1.0, axis.scale) : 1;
  const double support = options.mode == "cubic" ? 2 : 1;
  first = static_cast<int64_t>(std::floor(-support / shrink)) + 1;
  count = 2 * (static_cast<int64_t>(support) - first) - (support == 2 ? 2 : 0);
}

ResizeTaps make_taps(const ResizeAxis& axis, const ResizeOptions& options) {
  ResizeTaps taps;
  const auto [shrink, first, count] = ResizeReach(axis, options);
  taps.count = count;
  const std::string rounding = options.nearest != kNearestByScale ? options.nearest
                               : axis.scale < 1                   ? "ceil"
                                                                  : "floor";
  for (int64_t x = 0; x < axis.out; ++x) {
    const double position = source_position(axis, options, x);
    taps.outside.push_back(position < 0 || position > static_cast<double>(int64_t{axis.in - 1}));
    if (options.mode == "nearest") {
      taps.elements.push_back(std::clamp<int64_t>(nearest_element(rounding, position), 0, axis.in - 1));
      taps.weights.push_back(1);
      continue;
    }
    const double base = std::floor(position);
    const auto steps = static_cast<double>(options.cubic_steps);
    const double weighed = steps == 0 ? position : base + std::nearbyint((position - base) * steps) / steps;
    std::vector<double> weights;
    double sum = 0;
    for (int64_t tap = 0; tap < taps.count; ++tap) {
      const double element = base + static_cast<double>(first + tap);
      const double distance = (element - weighed) * shrink;
      double weight = options.mode == "cubic" ? keys(distance, options.cubic) : triangle(distance);
      if (options.exclude_outside && (element < 0 || element > static_cast<double>(int64_t{axis.in - 1})))
        weight = 0;
      taps.elements.push_back(
          static_cast<int64_t>(std::clamp(element, 0.0, static_cast<double>(int64_t{axis.in - 1}))));
      weights.push_back(weight);
      sum += weight;
    }
    for (double weight : weights) taps.weights.push_back(sum == 0 ? 0 : weight / sum);
  }
  return taps;
}

}  // namespace tensormill::build
