/// Rounding to odd: a second rounding to two bits fewer or more then gives what one rounding would (Boldo,
/// Melquiond 2008, "Emulation of FMA and correctly rounded sums"). So what is wider than float32 becomes a
/// type of 16 or 8 bits by way of float32, rounded once. Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tensormill {

/// `value` itself where float holds it, else the one of its two neighbours whose last bit is set.
inline float rounded_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

/// An integer that double need not hold; `is_signed` says how its bits are read.
inline float rounded_to_odd(int64_t value, bool is_signed) {
  constexpr uint64_t kExact = uint64_t{1} << 53, kLost = 0x7ff;
  auto bits = static_cast<uint64_t>(value);
  const bool is_exact = is_signed ? bits + kExact <= 2 * kExact : bits <= kExact;
  // What double would lose of it is the lowest bit that it keeps.
  if (!is_exact && (bits & kLost) != 0) bits = (bits & ~kLost) | (kLost + 1);
  return rounded_to_odd(is_signed ? static_cast<double>(static_cast<int64_t>(bits))
                                  : static_cast<double>(bits));
}

}  // namespace tensormill
