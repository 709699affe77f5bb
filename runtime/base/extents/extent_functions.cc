#include "runtime/base/extents/extent_functions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

namespace tensormill {
namespace {

/// Of a number that is whole; nothing for one that is too large, or none at all.
std::optional<int64_t> whole(double number) {
  constexpr double kLimit = 4611686018427387904.0;  // 2^62
  if (!(std::fabs(number) <= kLimit)) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::optional<int64_t> scaled(const int64_t* args) {
  const std::optional<float> factor = factor_of_bits(args[1]);
  if (!factor) return std::nullopt;
  return whole(std::floor(static_cast<float>(args[0]) * *factor));
}

std::optional<int64_t> scaled_by_ratio(const int64_t* args) {
  // Without elements there is nothing to divide by, and nothing to multiply.
  const auto down = static_cast<float>(std::max<int64_t>(args[2], 1));
  const float ratio = static_cast<float>(args[1]) / down;
  return whole(std::floor(static_cast<float>(args[0]) * ratio));
}

std::optional<int64_t> rounded_by_ratio(const int64_t* args) {
  const auto down = static_cast<double>(std::max<int64_t>(args[2], 1));
  return whole(std::round(static_cast<double>(args[0]) * (static_cast<double>(args[1]) / down)));
}

std::optional<int64_t> f32_of(const int64_t* args) { return float_code(static_cast<float>(args[0])); }

std::optional<int64_t> f32_to_int(const int64_t* args) {
  const std::optional<float> value = float_of_code(args[0]);
  return value ? whole(std::trunc(*value)) : std::nullopt;
}

template <typename Function>
std::optional<int64_t> unary(const int64_t* args, Function function) {
  const std::optional<float> value = float_of_code(args[0]);
  return value ? float_code(function(*value)) : std::nullopt;
}

template <typename Function>
std::optional<int64_t> binary(const int64_t* args, Function function) {
  const std::optional<float> a = float_of_code(args[0]), b = float_of_code(args[1]);
  return a && b ? float_code(function(*a, *b)) : std::nullopt;
}

std::optional<int64_t> f32_add(const int64_t* args) { return binary(args, std::plus<float>()); }
std::optional<int64_t> f32_sub(const int64_t* args) { return binary(args, std::minus<float>()); }
std::optional<int64_t> f32_mul(const int64_t* args) { return binary(args, std::multiplies<float>()); }
std::optional<int64_t> f32_div(const int64_t* args) {
  return args[1] == 0 ? std::nullopt : binary(args, std::divides<float>());
}
std::optional<int64_t> f32_sqrt(const int64_t* args) {
  return unary(args, [](float x) { return std::sqrt(x); });
}
std::optional<int64_t> f32_floor(const int64_t* args) {
  return unary(args, [](float x) { return std::floor(x); });
}
std::optional<int64_t> f32_ceil(const int64_t* args) {
  return unary(args, [](float x) { return std::ceil(x); });
}
std::optional<int64_t> f32_round(const int64_t* args) {
  return unary(args, [](float x) { return std::nearbyint(x); });
}

std::optional<int64_t> steps_of_f32(const int64_t* args) {
  const std::optional<float> start = float_of_code(args[0]), limit = float_of_code(args[1]),
                             delta = float_of_code(args[2]);
  if (!start || !limit || !delta || *delta == 0) return std::nullopt;
  const double span = static_cast<double>(*limit) - static_cast<double>(*start);
  return whole(std::max(0.0, std::ceil(span / static_cast<double>(*delta))));
}

constexpr auto kFunctions = std::to_array<ExtentFunction>({
#define TM_EXTENT_FUNCTION(name, arity, follows, meaning) {#name, arity, follows, &name},
#include "runtime/base/extents/extent_functions.def"
#undef TM_EXTENT_FUNCTION
});

}  // namespace

std::span<const ExtentFunction> extent_functions() { return kFunctions; }

std::optional<size_t> find_extent_function(std::string_view name) {
  for (size_t i = 0; i < kFunctions.size(); ++i) {
    if (kFunctions[i].name == name) return i;
  }
  return std::nullopt;
}

int64_t factor_bits(float factor) { return std::bit_cast<uint32_t>(factor); }

std::optional<float> factor_of_bits(int64_t bits) {
  if (bits < 0 || bits > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  const auto factor = std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (!(factor > 0) || std::isinf(factor)) return std::nullopt;
  return factor;
}

std::optional<int64_t> float_code(float value) {
  if (!std::isfinite(value)) return std::nullopt;
  const int64_t code = std::bit_cast<uint32_t>(std::fabs(value));
  return value < 0 ? -code : code;
}

std::optional<float> float_of_code(int64_t code) {
  constexpr int64_t kInfinity = 0x7F800000;
  if (code <= -kInfinity || code >= kInfinity) return std::nullopt;
  const auto magnitude = std::bit_cast<float>(static_cast<uint32_t>(code < 0 ? -code : code));
  return code < 0 ? -magnitude : magnitude;
}

}  // namespace tensormill
