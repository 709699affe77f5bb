/// The fixed-point arithmetic of gemmlowp, in which TensorFlow Lite's reference kernels round: as functions
/// of integers, for tables, and as nodes. Nodes compute in float64, which holds every product that is left
/// after a factor is cut in halves of 16 bits; so each result is the integer that int32 and int64 give.
/// Thread-safety: pure functions; nodes as the builder.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/build/compose.h"

namespace tensormill::build {

/// value * 2^(shift - 31), value of [2^30, 2^31) or 0.
struct FixedMultiplier {
  int32_t value = 0;
  int shift = 0;
};
/// The nearest one of a factor, which is finite and not negative; 0 for what is below 2^-32.
FixedMultiplier fixed_multiplier(double factor);

/// The high half of 2ab, rounded, ties up; int32's largest for the one product that has no half.
int32_t doubled_high_product(int32_t a, int32_t b);
/// x / 2^exponent, ties away from zero; exponent is 0 to 31.
int32_t rounded_shift(int32_t x, int exponent);
/// x * multiplier in both roundings.
int32_t multiplied(int32_t x, FixedMultiplier multiplier);

inline constexpr int kMostShiftOnce = 14;

/// The same as nodes on integers in float64; multipliers stand along the shape `along` (one for all: {}).
class FixedPoint {
public:
  using V = ir::ValueId;
  explicit FixedPoint(OpBuilder& builder) : c_(builder) {}
  V doubled_high_product(V a, V b);
  /// By a constant: one multiplier's value an element of `along`.
  V doubled_high_product(V a, const std::vector<int32_t>& b, const Shape& along);
  /// x of [-2^31, 2^31) by 2^exponent.
  V rounded_shift(V x, const std::vector<int>& exponents, const Shape& along);
  V multiplied(V x, const std::vector<FixedMultiplier>& multipliers, const Shape& along = {});
  /// x * multiplier rounded once, ties up; shifts are kMostShiftOnce at most.
  V multiplied_once(V x, const std::vector<FixedMultiplier>& multipliers, const Shape& along = {});
  /// The nearest integer, ties away from zero.
  V rounded(V x);

private:
  V numbers(const std::vector<double>& values, const Shape& along);
  V halves(V a, V high, V low);

  Compose c_;
};

}  // namespace tensormill::build
