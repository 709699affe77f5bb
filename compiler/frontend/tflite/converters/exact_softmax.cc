// SOFTMAX of int8 as the reference kernel computes it: exponentials of 31 bits, of which there are as many as
// differences of bytes, their sum with 12 bits in front of the point, and its reciprocal by three steps of
// Newton's.
#include <array>
#include <cmath>
#include <limits>

#include "compiler/frontend/tflite/converters/exact.h"

namespace tensormill::frontend::tflite {

namespace {

using build::doubled_high_product;

constexpr int kDiffBits = 5;  // in front of the point of a difference, of 31
constexpr int kSumBits = 12;  // in front of the point of the sum
constexpr int32_t kOne = std::numeric_limits<int32_t>::max();

/// e^(a / 2^31) for a of [-2^29, 0): Taylor's series around -1/8.
int32_t exp_of_last_quarter(int32_t a) {
  constexpr int32_t kAtEighth = 1895147668, kThird = 715827883;
  const int32_t x = a + (1 << 28);
  const int32_t x2 = doubled_high_product(x, x), x3 = doubled_high_product(x2, x);
  const int32_t quarter = build::rounded_shift(doubled_high_product(x2, x2), 2);
  const int32_t rest = build::rounded_shift(doubled_high_product(quarter + x3, kThird) + x2, 1);
  return kAtEighth + doubled_high_product(kAtEighth, x + rest);
}

/// e^(a / 2^26) in 31 bits, a not above 0.
int32_t exp_of_difference(int32_t a) {
  constexpr int kFraction = 31 - kDiffBits;
  constexpr int32_t kQuarter = 1 << (kFraction - 2);
  // e^(-2^k), k of -2 to 4.
  constexpr std::array<int32_t, 7> kPowers = {1672461947, 1302514674, 790015084, 290630308,
                                              39332535,   720401,     242};
  if (a == 0) return kOne;
  const int32_t part = (a & (kQuarter - 1)) - kQuarter;
  int32_t result = exp_of_last_quarter(part * (1 << kDiffBits));
  const int32_t rest = part - a;
  for (size_t k = 0; k < kPowers.size(); ++k) {
    const int place = kFraction - 2 + static_cast<int>(k);
    if ((rest >> place & 1) != 0) result = doubled_high_product(result, kPowers[k]);
  }
  return result;
}

struct Exponentials {
  std::vector<double> whole, summed;  ///< of differences of -255 to 0
};

Exponentials exponentials(double beta, double scale) {
  const double factor = std::min(beta * scale * (1 << (31 - kDiffBits)), 2147483647.0);
  const build::FixedMultiplier multiplier = build::fixed_multiplier(factor);
  const double largest = ((1 << kDiffBits) - 1) * std::ldexp(1.0, 31 - kDiffBits - multiplier.shift);
  const double least = -std::floor(largest);
  Exponentials to;
  for (int32_t difference = -255; difference <= 0; ++difference) {
    int32_t value = 0;
    if (difference >= least) {
      const auto moved = static_cast<int32_t>(difference * std::ldexp(1.0, multiplier.shift));
      value = exp_of_difference(doubled_high_product(moved, multiplier.value));
    }
    to.whole.push_back(value);
    to.summed.push_back(build::rounded_shift(value, kSumBits));
  }
  return to;
}

class Reciprocal {
public:
  Reciprocal(Compose& c, build::FixedPoint& fixed) : c_(c), fixed_(fixed) {}

  /// 2^31 / (1 + x) for the sum as 2^k (1 + x), x below 1, and 2^-(35 - k'), k' the places that the sum was
  /// moved by: what the products with exponentials are multiplied by for bytes.
  struct Result {
    V scale, unit;
  };
  Result of(V sum) {
    V unit = c_.plus(c_.times(sum, 0), std::ldexp(1.0, -35));
    for (int count = 16; count > 0; count /= 2) {
      const V is_small = c_.binary("less", sum, c_.number(sum, std::ldexp(1.0, 32 - count)));
      sum = c_.where(is_small, c_.times(sum, std::ldexp(1.0, count)), sum);
      unit = c_.where(is_small, c_.times(unit, std::ldexp(1.0, count)), unit);
    }
    return {inverse(c_.minus(sum, 2147483648.0)), unit};
  }

private:
  /// 1 / (1 + a) of 31 bits: twice x with x (1 + a) / 2 = 1, of 29 bits behind the point.
  V inverse(V a) {
    const V half = c_.unary("floor", c_.times(c_.plus(a, 2147483648.0), 0.5));
    V x = c_.plus(fixed_.doubled_high_product(half, c_.number(half, -1010580540)), 1515870810);
    for (int i = 0; i < 3; ++i) {
      const V error = c_.plus(c_.unary("neg", fixed_.doubled_high_product(half, x)), 1 << 29);
      x = c_.add(x, saturated(c_.times(fixed_.doubled_high_product(x, error), 4)));
    }
    return saturated(c_.times(x, 2));
  }
  V saturated(V x) { return c_.clip(x, -2147483648.0, 2147483647.0); }

  Compose& c_;
  build::FixedPoint& fixed_;
};

}  // namespace

void convert_exact_softmax(NodeContext& node) {
  ExactNode exact(node);
  const Int8Scale from = exact.input(0), to = exact.output();
  if (to.zero != -128 || to.scale != 1.0F / 256)
    node.unsupported("quantized exact", "a softmax whose scale is not 1/256 has no exact form");
  const auto beta = static_cast<double>(node.options<SoftmaxOptions>().beta);
  if (!(beta > 0) || !std::isfinite(beta))
    node.unsupported("beta", "one that is not positive has no exact form");
  Compose& c = exact.c;
  const V x = node.stored(0);
  if (node.rank(x) < 1) node.invalid("the input has no axis");
  const int64_t last = node.rank(x) - 1;
  const Exponentials table = exponentials(beta, static_cast<double>(from.scale));
  const V wide = c.cast(x, DType::kInt32);
  const V index = c.cast(c.plus(c.sub(wide, c.reduce("reduce_max", wide, {last}, true)), 255), DType::kInt64);
  const auto count = static_cast<int64_t>(table.whole.size());
  const V whole = c.gather(c.doubles(DType::kFloat64, table.whole, {count}), index, 0);
  const V summed = c.gather(c.doubles(DType::kFloat64, table.summed, {count}), index, 0);
  const auto [scale, unit] = Reciprocal(c, exact.fixed).of(c.reduce("reduce_sum", summed, {last}, true));
  const V product = exact.fixed.doubled_high_product(whole, scale);
  exact.set(exact.fixed.rounded(c.mul(product, unit)));
}

}  // namespace tensormill::frontend::tflite
