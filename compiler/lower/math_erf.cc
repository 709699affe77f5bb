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
  const Two divisor = two_sum(size, f64(x, kErfcShift));
  const Expr quotient = f64(x, 1) / divisor.high;
  const Expr t = quotient - f64(x, kErfcCenter);
  const Expr slope = polynomial(t, kErfc + 1, std::size(kErfc) - 1, context);
  if (context.narrow) {
    return math_exp(slope * t + f64(x, kErfc[0]) - size * size, context) / divisor.high;
  }
  // What an exponent loses in its roundings are digits of the power: what the divisor, the quotient and the
  // sums lost goes with it.
  const Two unit = two_product(quotient, divisor.high, context);
  const Expr lost = divisor.low * quotient;
  const Expr rest = quotient * ((f64(x, 1) - unit.high) - unit.low - lost);
  const Two product = two_product(t, slope, context);
  const Two p = two_sum(product.high, f64(x, kErfc[0]));
  const Two square = two_product(size, size, context);
  const Two exponent = two_sum(p.high, -square.high);
  const Expr low = exponent.low + (p.low + product.low + slope * rest - lost - square.low);
  return math_exp_of_sum(exponent.high, low, context) / divisor.high;
}

}  // namespace

Expr math_erfc(const Expr& x, const MathContext& context) {
  const Expr near = f64(x, 1) - x * polynomial(x * x, kErfSmall, std::size(kErfSmall), context);
  const Expr tail = erfc_tail(x, context);
  const Expr is_near = te::logical_and(x > f64(x, -1), x < f64(x, 0.475));
  return te::select(is_near, near, te::select(x < f64(x, 0), f64(x, 2) - tail, tail));
}

}  // namespace tensormill::lower
