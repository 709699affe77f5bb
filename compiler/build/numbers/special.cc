#include "compiler/build/numbers/special.h"

#include <array>
#include <limits>
#include <numbers>
#include <span>

#include "compiler/build/compose.h"

namespace tensormill::build {

namespace {

using V = ir::ValueId;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// 1 - Euler's constant, then (-1)^k (zeta(k) - 1) / k from k = 2 on: the powers of log gamma(2 + w) / w.
constexpr std::array kAroundTwo = {
    0.42278433509846713,     0.3224670334241132,     -0.0673523010531981,     0.020580808427784546,
    -0.007385551028673986,   0.0028905103307415234,  -0.001192753911703261,   0.0005096695247430425,
    -0.00022315475845357939, 9.945751278180853e-05,  -4.492623673813314e-05,  2.050721277567069e-05,
    -9.439488275268397e-06,  4.374866789907488e-06,  -2.039215753801366e-06,  9.55141213040742e-07,
    -4.492469198764566e-07,  2.1207184805554665e-07, -1.0043224823968099e-07, 4.7698101693639804e-08,
    -2.2711094608943164e-08, 1.0838659214896955e-08, -5.183475041970047e-09,  2.4836745438024785e-09,
    -1.1921401405860912e-09, 5.731367241678862e-10,  -2.7595228851242334e-10, 1.330476437424449e-10};
/// Stirling's series in 1 / z^2 of log gamma, times z, and of its derivative, times z^2: Bernoulli's numbers.
constexpr std::array kStirling = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                  1.0 / 1188, -691.0 / 360360, 1.0 / 156};
constexpr std::array kStirlingOfSlope = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                         1.0 / 132, -691.0 / 32760, 1.0 / 12};
/// M. Giles, "Approximating the erfinv function", 2010: about w = 2.5 and about sqrt(w) = 3.
constexpr std::array kCentral = {1.50140941,     0.246640727,    -0.00417768164,
                                 -0.00125372503, 0.00021858087,  -4.39150654e-06,
                                 -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
constexpr std::array kOuter = {2.83297682,     1.00167406,    0.00943887047,  -0.0076224613,  0.00573950773,
                               -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257};

/// Lowest power first.
V polynomial(Compose& c, V x, std::span<const double> coefficients) {
  V sum = c.plus(c.times(x, coefficients.back()), coefficients[coefficients.size() - 2]);
  for (size_t i = coefficients.size() - 2; i-- > 0;) sum = c.plus(c.mul(sum, x), coefficients[i]);
  return sum;
}

V is_below(Compose& c, V x, double limit) { return c.binary("less", x, c.number(x, limit)); }
V chosen(Compose& c, V condition, V x, double otherwise) {
  return c.where(condition, x, c.number(x, otherwise));
}

/// x less the nearest whole number, times pi: of what has that period in x.
V angle(Compose& c, V x) { return c.times(c.sub(x, c.unary("round", x)), std::numbers::pi); }

/// Of 0 to 2.5, where log gamma has both of its roots, of which the results near them keep their digits.
V log_gamma_near(Compose& c, V x) {
  const V is_high = c.unary("not", is_below(c, x, 1.5)), is_low = is_below(c, x, 0.5);
  const V begin = c.where(is_high, c.number(x, 2), chosen(c, is_low, c.number(x, 0), 1));
  const V w = c.sub(x, begin), none = c.number(x, 0);
  const V above = c.mul(w, polynomial(c, w, kAroundTwo));
  const V step = c.where(is_high, none, c.unary("log1p", w)),
          second = c.where(is_low, c.unary("log", x), none);
  return c.sub(c.sub(above, step), second);
}

/// By Stirling's series at x + 6, or of large numbers at x.
V log_gamma_far(Compose& c, V x) {
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const V is_large = c.binary("greater", x, c.number(x, 16));
  V product = x;
  for (int i = 1; i < 6; ++i) product = c.mul(product, c.plus(x, i));
  const V z = c.where(is_large, x, c.plus(x, 6));
  const V whole = c.sub(c.mul(c.minus(z, 0.5), c.unary("log", z)), z);
  const V rest = c.div(polynomial(c, c.div(c.number(z, 1), c.mul(z, z)), kStirling), z);
  const V passed = c.where(is_large, c.number(x, 0), c.unary("log", product));
  return c.sub(c.add(c.plus(whole, kHalfLogTwoPi), rest), passed);
}

/// The x >= 0 of erfc(x) = q, where y = 1 - q: near 0 the one tells more, near 1 the other.
V tail_place(Compose& c, V y, V q) {
  constexpr double kTwoByRootPi = 2 * std::numbers::inv_sqrtpi;
  const V w = c.unary("neg", c.unary("log", c.mul(q, c.sub(c.number(q, 2), q))));
  const V inner = c.where(is_below(c, w, 5), polynomial(c, c.minus(w, 2.5), kCentral),
                          polynomial(c, c.minus(c.unary("sqrt", w), 3), kOuter));
  const V size = c.unary("neg", c.unary("log", q));
  const V outer = c.unary("sqrt", c.sub(size, c.times(c.unary("log", c.times(size, std::numbers::pi)), 0.5)));
  V x = c.where(is_below(c, w, 16), c.mul(inner, y), outer);
  // Halley's step: the first place has some digits, the next one three times as many.
  for (int i = 0; i < 2; ++i) {
    const V off = c.where(is_below(c, y, 0.5), c.sub(c.unary("erf", x), y), c.sub(q, c.unary("erfc", x)));
    const V slope = c.times(c.unary("exp", c.unary("neg", c.mul(x, x))), kTwoByRootPi);
    x = c.sub(x, c.div(off, c.add(slope, c.mul(x, off))));
  }
  return c.where(c.binary("equal", q, c.number(q, 0)), c.number(x, kInfinity), x);
}

V wide(Compose& c, V x) { return c.cast(x, DType::kFloat64); }

}  // namespace

V log_gamma(OpBuilder& builder, V given) {
  Compose c(builder);
  const V x = wide(c, given);
  const V is_negative = is_below(c, x, 0), size = c.where(is_negative, c.sub(c.number(x, 1), x), x);
  const V positive = c.where(is_below(c, size, 2.5), log_gamma_near(c, size), log_gamma_far(c, size));
  const V sine = c.unary("abs", c.unary("sin", angle(c, x)));
  const V negative = c.sub(c.unary("log", c.div(c.number(x, std::numbers::pi), sine)), positive);
  const V value = c.where(is_negative, negative, positive);
  return c.cast(c.where(c.unary("is_inf", x), c.number(x, kInfinity), value), c.dtype(given));
}

V digamma(OpBuilder& builder, V given) {
  Compose c(builder);
  constexpr int kSteps = 10;
  const V x = wide(c, given);
  const V is_negative = is_below(c, x, 0), size = c.where(is_negative, c.sub(c.number(x, 1), x), x);
  const V one = c.number(x, 1);
  V passed = c.div(one, size);
  for (int i = 1; i < kSteps; ++i) passed = c.add(passed, c.div(one, c.plus(size, i)));
  const V z = c.plus(size, kSteps), square = c.mul(z, z);
  const V rest = c.div(polynomial(c, c.div(one, square), kStirlingOfSlope), square);
  const V whole = c.sub(c.unary("log", z), c.div(c.number(z, 0.5), z));
  const V positive = c.sub(c.sub(whole, rest), passed);
  const V turn = angle(c, x), is_pole = c.binary("equal", turn, c.number(x, 0));
  const V negative = c.sub(positive, c.div(c.number(x, std::numbers::pi), c.unary("tan", turn)));
  const V nan = c.number(x, std::numeric_limits<double>::quiet_NaN());
  return c.cast(c.where(is_negative, c.where(is_pole, nan, negative), positive), c.dtype(given));
}

V erf_inverse(OpBuilder& builder, V given) {
  Compose c(builder);
  const V x = wide(c, given), size = c.unary("abs", x);
  const V place = tail_place(c, size, c.sub(c.number(x, 1), size));
  return c.cast(c.where(is_below(c, x, 0), c.unary("neg", place), place), c.dtype(given));
}

V normal_quantile(OpBuilder& builder, V given) {
  Compose c(builder);
  const V x = wide(c, given), one = c.number(x, 1);
  const V tail = c.times(c.binary("min", x, c.sub(one, x)), 2);
  const V place = c.times(tail_place(c, c.sub(one, tail), tail), std::numbers::sqrt2);
  return c.cast(c.where(is_below(c, x, 0.5), c.unary("neg", place), place), c.dtype(given));
}

V special_function(OpBuilder& builder, const std::string& name, std::vector<V> operands) {
  Compose c(builder);
  const DType dtype = c.dtype(operands.front());
  ir::SymShape shape;
  for (const V x : operands) shape = broadcast_shapes(shape, c.shape(x));
  for (V& x : operands) x = c.expand(wide(c, x), shape);
  return c.cast(builder.add("special_function", operands, {{"name", name}}), dtype);
}

}  // namespace tensormill::build
