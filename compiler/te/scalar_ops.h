/// The scalar semantics of single operators as inline functions: evaluate_op and the interpreter's fast paths
/// share these definitions, so that the two cannot differ. Thread-safety: pure functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/base/dtype.h"

namespace tensormill::te {

inline int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapping_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
inline int64_t wrapping_neg(int64_t a) { return wrapping_sub(0, a); }

inline int64_t signed_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrapping_neg(a) : a / b;
}
inline int64_t signed_mod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
inline int64_t signed_floordiv(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrapping_neg(a);
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline int64_t signed_floormod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// Unsigned bytes of a times signed bytes of b, the four products added.
inline int64_t dot_of_bytes(int64_t a, int64_t b) {
  int64_t sum = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    sum += int64_t{static_cast<uint8_t>(a >> shift)} * int64_t{static_cast<int8_t>(b >> shift)};
  }
  return sum;
}

/// NaN if either is NaN, -0 < +0.
template <typename T>
T float_min(T a, T b) {
  if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T float_max(T a, T b) {
  if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

/// Toward zero, saturating; NaN gives 0.
inline int64_t saturate_to_signed(double value, int bits) {
  if (value != value) return 0;
  const double bound = std::ldexp(1.0, bits - 1);
  if (value >= bound)
    return bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1;
  if (value < -bound) return bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1));
  return static_cast<int64_t>(value);
}
inline uint64_t saturate_to_unsigned(double value, int bits) {
  if (!(value > 0)) return 0;
  const double bound = std::ldexp(1.0, bits);
  if (value >= bound) return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return static_cast<uint64_t>(value);
}

}  // namespace tensormill::te
