// exp and what is made of it.
#include "compiler/lower/math.h"
#include "compiler/lower/math_tables.h"

namespace tensormill::lower {

using te::Expr;

namespace {

constexpr double kLog2e = 1.4426950408889634;

// 1/n!, from the term of r^2 on
constexpr double kExp[] = {1.0 / 2,       1.0 / 6,          1.0 / 24,          1.0 / 120,
                           1.0 / 720,     1.0 / 5040,       1.0 / 40320,       1.0 / 362880,
                           1.0 / 3628800, 1.0 / 39916800.0, 1.0 / 479001600.0, 1.0 / 6227020800.0};

// 2^n from the bits of n + 1.5 * 2^52.
Expr power_of_two(const Expr& bits) {
  const Expr exponent = bits + i64(bits, 1023);
  return te::reinterpret(DType::kFloat64, te::make(te::ExprOp::kShl, {exponent, i64(bits, 52)}));
}

// Two factors, so that neither overflows and a denormal result is rounded once.
Expr times_power_of_two(const Expr& p, const Expr& n) {
  const Rounded half = round_small(n * f64(p, 0.5));
  const Rounded rest = round_small(n - half.value);
  return p * power_of_two(half.bits) * power_of_two(rest.bits);
}

}  // namespace

Expr math_exp(const Expr& x, const MathContext& context) {
  const double high = context.narrow ? 130 : 710, low = context.narrow ? -150 : -746;
  const Expr clamped = te::min(te::max(x, f64(x, low)), f64(x, high));
  const Rounded n = round_small(clamped * f64(x, kLog2e));
  Expr r = clamped - n.value * f64(x, kLn2High);
  r = r - n.value * f64(x, kLn2Low);
  const Expr tail = polynomial(r, kExp, context.narrow ? 6 : 12, context);
  const Expr p = multiply_add(r * r, tail, r, context) + f64(x, 1);
  return context.narrow ? p * power_of_two(n.bits) : times_power_of_two(p, n.value);
}

Expr math_exp_of_sum(const Expr& high, const Expr& low, const MathContext& context) {
  const Expr clamped = te::min(te::max(high, f64(high, -746)), f64(high, 710));
  const Rounded n = round_small(clamped * f64(high, kLog2e));
  const Expr whole = clamped - n.value * f64(high, kLn2High);
  const Expr part = n.value * f64(high, kLn2Low);
  const Expr r = whole - part;
  const Expr kept = te::select(clamped == high, low, f64(high, 0));
  const Expr rest = ((whole - r) - part) + kept;
  const Expr curve = r * r * polynomial(r, kExp, 12, context);
  const Expr tail = curve + (rest + rest * (r + curve));
  const Two first = add_smaller(f64(high, 1), r);
  return times_power_of_two(first.high + (first.low + tail), n.value);
}

Expr math_sigmoid(const Expr& x, const MathContext& context) {
  const Expr z = math_exp(-magnitude(x), context);
  return te::select(x >= f64(x, 0), f64(x, 1), z) / (f64(x, 1) + z);
}

Expr math_tanh(const Expr& x, const MathContext& context) {
  // Lambert's continued fraction, nine levels deep, for small |x|.
  static constexpr double kUpper[] = {34459425, 4729725, 135135, 990, 1};
  static constexpr double kLower[] = {34459425, 16216200, 945945, 13860, 45};
  const Expr z = x * x;
  const Expr small = x * (polynomial(z, kUpper, 5, context) / polynomial(z, kLower, 5, context));
  const Expr size = te::min(magnitude(x), f64(x, 22));
  const Expr e = math_exp(size + size, context);
  const Expr large = f64(x, 1) - f64(x, 2) / (e + f64(x, 1));
  return te::select(magnitude(x) < f64(x, 0.55), small, te::select(x == x, with_sign(large, x), x));
}

namespace {

// exp(|x|) / 2 and exp(-|x|) / 2 by way of exp(|x| / 2), which does not overflow where the result does not.
struct HalfExp {
  Expr growing, falling;
};
HalfExp half_exp(const Expr& x, const MathContext& context) {
  const Expr size = magnitude(x);
  const Expr whole = math_exp(te::min(size, f64(x, 700)), {context.use_fma, false});
  const Expr root = math_exp(size * f64(x, 0.5), {context.use_fma, false});
  const Expr growing = te::select(size < f64(x, 700), whole * f64(x, 0.5), root * f64(x, 0.5) * root);
  return {growing, f64(x, 0.5) / whole};
}

}  // namespace

Expr math_cosh(const Expr& x, const MathContext& context) {
  const HalfExp e = half_exp(x, context);
  return e.growing + e.falling;
}

Expr math_sinh(const Expr& x, const MathContext& context) {
  static constexpr double kTaylor[] = {1.0 / 6,
                                       1.0 / 120,
                                       1.0 / 5040,
                                       1.0 / 362880,
                                       1.0 / 39916800,
                                       1.0 / 6227020800.0,
                                       1.0 / 1307674368000.0,
                                       1.0 / 355687428096000.0};
  const Expr z = x * x;
  const Expr small = multiply_add(x * z, polynomial(z, kTaylor, 8, context), x, context);
  const HalfExp e = half_exp(x, context);
  const Expr large = with_sign(e.growing - e.falling, x);
  return te::select(magnitude(x) < f64(x, 1), small, te::select(x == x, large, x));
}

}  // namespace tensormill::lower
