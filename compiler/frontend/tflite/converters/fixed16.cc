#include "compiler/frontend/tflite/converters/fixed16.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "compiler/build/numbers/fixed_point.h"

namespace tensormill::frontend::tflite {

namespace {

constexpr int32_t kOne16 = 32767;

int32_t saturated16(int32_t x) { return std::clamp(x, -32768, 32767); }

/// The high half of 2ab of 16 bits, rounded, ties up.
int32_t product16(int32_t a, int32_t b) { return (a * b + (1 << 14)) >> 15; }

/// A constant of 32 bits in 16.
int32_t halved(int32_t value) { return build::rounded_shift(value, 16); }

/// e^(a / 2^15) for a of [-2^13, 0): Taylor's series around -1/8.
int32_t exp_of_last_quarter16(int32_t a) {
  const int32_t at_eighth = halved(1895147668), third = halved(715827883);
  const int32_t x = a + (1 << 12);
  const int32_t x2 = product16(x, x), x3 = product16(x2, x);
  const int32_t quarter = build::rounded_shift(product16(x2, x2), 2);
  const int32_t rest = build::rounded_shift(product16(quarter + x3, third) + x2, 1);
  return saturated16(at_eighth + product16(at_eighth, x + rest));
}

/// e^a in 15 bits, a not above 0 with `integer_bits` in front of its point.
int32_t exp_of_negative(int32_t a, int integer_bits) {
  // e^(-2^k), k of -2 to 4.
  constexpr std::array<int32_t, 7> kPowers = {1672461947, 1302514674, 790015084, 290630308,
                                              39332535,   720401,     242};
  constexpr int kLeastPower = -2;
  if (a == 0) return kOne16;
  const int fraction = 15 - integer_bits;
  // e^-32 is nothing in 15 bits; with fewer bits in front of the point there is no such number.
  constexpr int kClamped = 5;
  if (integer_bits > kClamped && a < -(1 << (fraction + kClamped))) return 0;
  const int32_t quarter = 1 << (fraction + kLeastPower);
  const int32_t part = (a & (quarter - 1)) - quarter;
  int32_t result = exp_of_last_quarter16(saturated16(part * (1 << integer_bits)));
  const int32_t rest = part - a;
  for (size_t k = 0; k < kPowers.size(); ++k) {
    const int power = kLeastPower + static_cast<int>(k);
    if (integer_bits > power && (rest >> (fraction + power) & 1) != 0)
      result = product16(result, halved(kPowers[k]));
  }
  return result;
}

/// 2 / (1 + a) in 13 bits behind the point, by three steps of Newton's.
int32_t doubled_inverse(int32_t a) {
  const int32_t half = (a + kOne16 + 1) / 2;
  int32_t x = halved(1515870810) + product16(half, halved(-1010580540));
  for (int i = 0; i < 3; ++i) x += saturated16(product16(x, (1 << 13) - product16(half, x)) * 4);
  return x;
}

}  // namespace

int16_t fixed_sigmoid(int16_t x) {
  constexpr int kIntegerBits = 3;
  if (x == 0) return 1 << 14;
  const int32_t of_size =
      saturated16(doubled_inverse(exp_of_negative(-std::abs(int32_t{x}), kIntegerBits)) * 2);
  return static_cast<int16_t>(x > 0 ? of_size : kOne16 - of_size);
}

int16_t fixed_tanh(int16_t x, int integer_bits) {
  if (x == 0) return 0;
  const int32_t inverse = doubled_inverse(exp_of_negative(-std::abs(int32_t{x}), integer_bits + 1));
  const int32_t of_size = saturated16((inverse - (1 << 13)) * 4);
  return static_cast<int16_t>(x > 0 ? of_size : -of_size);
}

}  // namespace tensormill::frontend::tflite
