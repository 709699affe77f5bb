#include "runtime/base/extent_functions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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

constexpr auto kFunctions = std::to_array<ExtentFunction>({
#define TM_EXTENT_FUNCTION(name, arity, follows, meaning) {#name, arity, follows, &name},
#include "runtime/base/extent_functions.def"
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

}  // namespace tensormill
