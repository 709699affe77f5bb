// erf: a polynomial up to 1, then 1 - exp(-x^2) * q(1 / (1 + x/2)). erfc: 1 - erf where that is more than a
// half, elsewhere exp(p(1 / (x + k)) - x^2) / (x + k), which keeps its digits down to the least number.
#include <iterator>

#include "compiler/lower/math.h"
#include "compiler/lower/math_tables.h"

namespace tensormill::lower {

using te::Expr;

Expr math_erf(const Expr& x, const MathContext& context) {
  const Expr z = x * x;
  const Expr near = polynomial(z, kErfSmall, std::size(kErfSmall), context);
  const Expr size = te::min(magnitude(x), f64(x, 6));
  const Expr t = f64(x, 1) / (size * f64(x, 0.5) + f64(x, 1)) - f64(x, kErfTailCenter);
  const Expr q = polynomial(t, kErfTail, std::size(kErfTail), context);
  const Expr far = f64(x, 1) - math_exp(-(size * size), context) * q;
  return te::select(magnitude(x) < f64(x, 1), x * near, te::select(x == x, with_sign(far, x), x));
}

namespace {

/// erfc of |x| where that is not below 0.475; past 28 it is 0.
Expr erfc_tail(const Expr& x, const MathContext& context) {
  const Expr size = te::min(magnitude(x), f64(x, 28));
  const Expr divisor = size + f64(x, kErfcShift);
  const Expr t = f64(x, 1) / divisor - f64(x, kErfcCenter);
  const Expr p = polynomial(t, kErfc, std::size(kErfc), context);
  if (context.narrow) return math_exp(p - size * size, context) / divisor;
  // What an exponent of hundreds loses in its rounding are digits of the power.
  const Two square = two_product(size, size, context);
  const Two exponent = two_sum(p, -square.high);
  return math_exp_of_sum(exponent.high, exponent.low - square.low, context) / divisor;
}

}  // namespace

Expr math_erfc(const Expr& x, const MathContext& context) {
  const Expr near = f64(x, 1) - x * polynomial(x * x, kErfSmall, std::size(kErfSmall), context);
  const Expr tail = erfc_tail(x, context);
  const Expr is_near = te::logical_and(x > f64(x, -1), x < f64(x, 0.475));
  return te::select(is_near, near, te::select(x < f64(x, 0), f64(x, 2) - tail, tail));
}

}  // namespace tensormill::lower
