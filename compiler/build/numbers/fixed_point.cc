#include "compiler/build/numbers/fixed_point.h"

#include <cmath>
#include <limits>

namespace tensormill::build {

namespace {

constexpr int64_t kHalf = int64_t{1} << 30;
constexpr double kLowWord = 65536;

}  // namespace

FixedMultiplier fixed_multiplier(double factor) {
  if (!(factor > 0)) return {};
  int shift = 0;
  const double fraction = std::frexp(factor, &shift);
  int64_t value = std::llround(std::ldexp(fraction, 31));
  if (value == int64_t{1} << 31) {
    value /= 2;
    ++shift;
  }
  if (shift < -31) return {};
  if (shift > 30) return {std::numeric_limits<int32_t>::max(), 30};
  return {static_cast<int32_t>(value), shift};
}

int32_t doubled_high_product(int32_t a, int32_t b) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  if (a == kLeast && b == kLeast) return std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>((int64_t{a} * b + kHalf) >> 31);
}

int32_t rounded_shift(int32_t x, int exponent) {
  if (exponent == 0) return x;
  const int64_t half = int64_t{1} << (exponent - 1);
  return static_cast<int32_t>((x + half - (x < 0 ? 1 : 0)) >> exponent);
}

int32_t multiplied(int32_t x, FixedMultiplier multiplier) {
  const auto left = static_cast<uint32_t>(std::max(multiplier.shift, 0));
  const auto moved = static_cast<int32_t>(static_cast<uint32_t>(x) << left);
  return rounded_shift(doubled_high_product(moved, multiplier.value), std::max(-multiplier.shift, 0));
}

FixedPoint::V FixedPoint::numbers(const std::vector<double>& values, const Shape& along) {
  return c_.doubles(DType::kFloat64, values, ir::SymShape(along.begin(), along.end()));
}

// (a (high 2^16 + low) + 2^30) / 2^31 rounded down: what of a low is below 2^16 is less than one of the
// second quotient's last place.
FixedPoint::V FixedPoint::halves(V a, V high, V low) {
  const V rest =
      c_.unary("floor", c_.times(c_.plus(c_.mul(a, low), static_cast<double>(kHalf)), 1 / kLowWord));
  return c_.unary("floor", c_.times(c_.add(c_.mul(a, high), rest), 1 / (kLowWord / 2)));
}

FixedPoint::V FixedPoint::doubled_high_product(V a, V b) {
  const V high = c_.unary("floor", c_.times(b, 1 / kLowWord));
  return halves(a, high, c_.sub(b, c_.times(high, kLowWord)));
}

FixedPoint::V FixedPoint::doubled_high_product(V a, const std::vector<int32_t>& b, const Shape& along) {
  std::vector<double> high, low;
  for (const int32_t value : b) {
    high.push_back(std::floor(value / kLowWord));
    low.push_back(value - high.back() * kLowWord);
  }
  return halves(a, numbers(high, along), numbers(low, along));
}

FixedPoint::V FixedPoint::rounded(V x) {
  const V up = c_.unary("floor", c_.plus(x, 0.5)), down = c_.unary("ceil", c_.minus(x, 0.5));
  return c_.where(c_.binary("less", x, c_.number(x, 0)), down, up);
}

FixedPoint::V FixedPoint::rounded_shift(V x, const std::vector<int>& exponents, const Shape& along) {
  std::vector<double> factors;
  bool moves = false;
  for (const int exponent : exponents) {
    factors.push_back(std::ldexp(1.0, -exponent));
    moves = moves || exponent != 0;
  }
  return moves ? rounded(c_.mul(x, numbers(factors, along))) : x;
}

// (x (high 2^16 + low) + 2^(30 - shift)) / 2^(31 - shift) rounded down, of which 2^16 is taken first.
FixedPoint::V FixedPoint::multiplied_once(V x, const std::vector<FixedMultiplier>& multipliers,
                                          const Shape& along) {
  std::vector<double> high, low, half, unit;
  for (const FixedMultiplier& each : multipliers) {
    high.push_back(std::floor(each.value / kLowWord));
    low.push_back(each.value - high.back() * kLowWord);
    half.push_back(std::ldexp(1.0, kMostShiftOnce - each.shift));
    unit.push_back(std::ldexp(1.0, each.shift - kMostShiftOnce - 1));
  }
  const V rest = c_.unary("floor", c_.times(c_.mul(x, numbers(low, along)), 1 / kLowWord));
  const V sum = c_.add(c_.add(c_.mul(x, numbers(high, along)), rest), numbers(half, along));
  return c_.unary("floor", c_.mul(sum, numbers(unit, along)));
}

FixedPoint::V FixedPoint::multiplied(V x, const std::vector<FixedMultiplier>& multipliers,
                                     const Shape& along) {
  std::vector<int32_t> values;
  std::vector<double> left;
  std::vector<int> right;
  bool grows = false;
  for (const FixedMultiplier& each : multipliers) {
    values.push_back(each.value);
    left.push_back(std::ldexp(1.0, std::max(each.shift, 0)));
    right.push_back(std::max(-each.shift, 0));
    grows = grows || each.shift > 0;
  }
  if (grows) x = c_.mul(x, numbers(left, along));
  return rounded_shift(doubled_high_product(x, values, along), right, along);
}

}  // namespace tensormill::build
