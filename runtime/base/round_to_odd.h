/// The first of two roundings. Thread-safety: pure.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tensormill {

/// `value` as float, rounded to odd: a second rounding to fewer bits then gives what one rounding would
/// (Boldo, Melquiond 2008, "Emulation of FMA and correctly rounded sums").
inline float rounded_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace tensormill
