// log and pow.
#include <limits>

#include "compiler/lower/math.h"
#include "compiler/lower/math_tables.h"

namespace tensormill::lower {

using te::Expr;
using te::ExprOp;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// log((1+s)/(1-s)) = 2s + s^3 * (...), the even part in z = s^2 (W. Kahan, K. C. Ng).
constexpr double kLog[] = {0.0,
                           6.666666666666735130e-01,
                           3.999999999940941908e-01,
                           2.857142874366239149e-01,
                           2.222219843214978396e-01,
                           1.818357216161805012e-01,
                           1.531383769920937332e-01,
                           1.479819860511658591e-01};

// x is positive and finite.
Expr log_positive(const Expr& x, const MathContext& context) {
  const Expr tiny = x < f64(x, std::numeric_limits<double>::min());
  const Expr scaled = te::select(tiny, x * f64(x, 0x1p54), x);
  const Expr bits = te::reinterpret(DType::kInt64, scaled);
  const Expr exponent = te::make(ExprOp::kShr, {bits - i64(x, 0x3fe6a09e667f3bcd), i64(x, 52)});
  const Expr mantissa =
      te::reinterpret(DType::kFloat64, bits - te::make(ExprOp::kShl, {exponent, i64(x, 52)}));
  const Expr small_int =
      te::reinterpret(DType::kFloat64, exponent + i64(x, 0x4338000000000000)) - f64(x, 0x1.8p52);
  const Expr k = small_int - te::select(tiny, f64(x, 54), f64(x, 0));
  const Expr f = mantissa - f64(x, 1);
  const Expr s = f / (f + f64(x, 2));
  const Expr z = s * s;
  const Expr rest = polynomial(z, kLog, 8, context);
  const Expr half_square = f * f * f64(x, 0.5);
  const Expr low = multiply_add(s, half_square + rest, k * f64(x, kLn2Low), context);
  return k * f64(x, kLn2High) - ((half_square - low) - f);
}

}  // namespace

Expr math_log(const Expr& x, const MathContext& context) {
  const Expr value = log_positive(x, context);
  const Expr finite = te::select(x < f64(x, kInfinity), value, x);  // +inf and NaN stand for themselves
  const Expr zero_or_less = te::select(x == f64(x, 0), f64(x, -kInfinity), f64(x, kNan));
  return te::select(x <= f64(x, 0), zero_or_less, finite);
}

Expr math_pow(const Expr& x, const Expr& y, const MathContext& context) {
  const Expr zero = f64(x, 0), one = f64(x, 1);
  const Expr size = magnitude(x);
  const Expr power = math_exp(y * math_log(size, {context.use_fma, false}), {context.use_fma, false});
  // Signs: a negative base needs an integer exponent; an odd one keeps the sign (-0 and -inf included).
  const Expr half = y * f64(x, 0.5);
  const Expr integer = te::make(ExprOp::kFloor, {y}) == y;
  const Expr odd = te::logical_and(integer, te::make(ExprOp::kFloor, {half}) != half);
  const Expr sign = te::select(odd, x, one);
  const Expr sized = te::select(power == power, with_sign(power, sign), power);
  const Expr negative = te::logical_and(x < zero, te::logical_not(integer));
  const Expr finite_base = size < f64(x, kInfinity);
  const Expr invalid = te::logical_and(negative, te::logical_and(finite_base, size > zero));
  const Expr infinite_exponent = magnitude(y) == f64(x, kInfinity);
  const Expr domain =
      te::select(te::logical_and(invalid, te::logical_not(infinite_exponent)), f64(x, kNan), sized);
  const Expr unit = te::logical_and(size == one, infinite_exponent);
  const Expr is_one = te::logical_or(te::logical_or(y == zero, x == one), unit);
  return te::select(is_one, one, domain);
}

}  // namespace tensormill::lower
