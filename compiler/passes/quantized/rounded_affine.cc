// The scale follows from what was rounded in the first place, between two bytes where it is not limited. Each
// byte's result says between which ends the shift lies, and the middle of what all of them leave is as far
// from every tie as it can be. Then all results are computed and compared: whatever was found, it is right.
#include "compiler/passes/quantized/rounded_affine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tensormill::passes {

namespace {

/// Of scales: with others results are all the same, or hardly ever what is between the limits.
constexpr double kLeastScale = 1e-6, kMostScale = 1e6;
/// Changes that are closer to an end than this many bytes may be limited in part.
constexpr size_t kFewestChanges = 4;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Bytes = std::array<double, kBytes>;

struct Line {
  float scale = 0, shift = 0;
};

class Fit {
public:
  Fit(const ByteFunction& function, DType dtype)
      : function_(function), is_signed_(dtype == DType::kInt8), bytes_(in_order()) {}

  std::optional<RoundedAffine> run() {
    if (!function_.unrounded || function_.unrounded->dtype() != DType::kFloat32) return std::nullopt;
    // A sum of whole numbers behind the rounding is part of the shift, but for the ties where it is odd.
    for (const double offset : {0.0, 1.0}) {
      if (find(offset)) return found_;
    }
    return std::nullopt;
  }

private:
  /// All bytes, the smallest one first.
  Bytes in_order() const {
    Bytes bytes{};
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<double>(i) - (is_signed_ ? 128 : 0);
    return bytes;
  }

  /// Where a tensor [256,channels or 1] has the byte `i` of that order.
  int64_t place(const Tensor& tensor, size_t i, int64_t channel) const {
    const int64_t columns = tensor.shape()[1];
    const auto bits = static_cast<int64_t>(is_signed_ ? i ^ 128U : i);
    return bits * columns + (columns == 1 ? 0 : channel);
  }
  double result(size_t i, int64_t channel) const {
    const int64_t at = place(function_.values, i, channel);
    if (function_.values.dtype() == DType::kInt8)
      return static_cast<const int8_t*>(function_.values.data())[at];
    return static_cast<const uint8_t*>(function_.values.data())[at];
  }

  bool find(double offset) {
    found_ = {};
    found_.offset = offset;
    found_.low = found_.least = std::numeric_limits<double>::infinity();
    found_.high = found_.most = -std::numeric_limits<double>::infinity();
    for (int64_t channel = 0; channel < function_.channels; ++channel) {
      for (size_t i = 0; i < bytes_.size(); ++i) {
        found_.low = std::min(found_.low, result(i, channel));
        found_.high = std::max(found_.high, result(i, channel));
      }
    }
    for (int64_t channel = 0; channel < function_.channels; ++channel) {
      for (size_t i = 0; i < bytes_.size(); ++i) results_[i] = result(i, channel);
      const std::optional<Line> line = line_of(channel);
      if (!line) return false;
      found_.scale.push_back(line->scale);
      found_.shift.push_back(line->shift);
    }
    return true;
  }

  double unrounded(size_t i, int64_t channel) const {
    const Tensor& tensor = *function_.unrounded;
    return tensor.values<float>()[static_cast<size_t>(place(tensor, i, channel))];
  }

  std::optional<Line> line_of(int64_t channel) {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (!std::isfinite(unrounded(i, channel))) return std::nullopt;
    }
    if (std::all_of(results_.begin(), results_.end(), [&](double each) { return each == results_[0]; })) {
      const Line constant{0, static_cast<float>(results_[0] - found_.offset)};
      return holds(constant) ? std::optional<Line>(constant) : std::nullopt;
    }
    const std::optional<double> slope = slope_of(channel);
    if (!slope) return std::nullopt;
    const auto nearest = static_cast<float>(*slope);
    for (const float scale :
         {nearest, std::nextafter(nearest, kInfinity), std::nextafter(nearest, -kInfinity)}) {
      const std::optional<float> shift = shift_of(scale);
      if (shift && holds({scale, *shift})) return Line{scale, *shift};
    }
    return std::nullopt;
  }

  /// By how much what is rounded grows from byte to byte.
  std::optional<double> slope_of(int64_t channel) const {
    const auto value = [&](size_t i) { return unrounded(i, channel); };
    size_t first = kBytes, last = 0;
    for (size_t i = 1; i < bytes_.size(); ++i) {
      if (value(i) == value(i - 1)) continue;
      first = std::min(first, i - 1);
      last = i;
    }
    if (first >= last) return std::nullopt;
    // At the ends it may have been limited on the way.
    if (last - first >= kFewestChanges) {
      ++first;
      --last;
    }
    const double slope = (value(last) - value(first)) / (bytes_[last] - bytes_[first]);
    const double size = std::abs(slope);
    return size >= kLeastScale && size <= kMostScale ? std::optional<double>(slope) : std::nullopt;
  }

  /// The middle of the shifts with which all results are what they are, or nearly.
  std::optional<float> shift_of(float scale) const {
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < bytes_.size(); ++i) {
      const double rest = results_[i] - found_.offset - static_cast<double>(scale) * bytes_[i];
      if (results_[i] > found_.low) low = std::max(low, rest - 0.5);
      if (results_[i] < found_.high) high = std::min(high, rest + 0.5);
    }
    if (!std::isfinite(low) || !std::isfinite(high) || low > high) return std::nullopt;
    return static_cast<float>((low + high) / 2);
  }

  bool holds(const Line& line) {
    double least = found_.least, most = found_.most;
    for (size_t i = 0; i < bytes_.size(); ++i) {
      // In double the product is exact, and the sum of two float32 is rounded to float32 as if once.
      const auto q = static_cast<float>(bytes_[i]);
      const auto product = static_cast<float>(static_cast<double>(line.scale) * bytes_[i]);
      const auto sum = static_cast<float>(static_cast<double>(product) + static_cast<double>(line.shift));
      for (const float value : {sum, std::fma(line.scale, q, line.shift)}) {
        const double whole = std::nearbyint(static_cast<double>(value)) + found_.offset;
        if (std::clamp(whole, found_.low, found_.high) != results_[i]) return false;
        least = std::min(least, whole);
        most = std::max(most, whole);
      }
    }
    found_.least = least;
    found_.most = most;
    return true;
  }

  const ByteFunction& function_;
  bool is_signed_;
  Bytes bytes_;
  Bytes results_{};  ///< of the channel that is looked at
  RoundedAffine found_;
};

}  // namespace

std::optional<RoundedAffine> rounded_affine(const ByteFunction& function, DType dtype) {
  return Fit(function, dtype).run();
}

}  // namespace tensormill::passes
