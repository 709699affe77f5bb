// erf: a polynomial up to 1, then 1 - exp(-x^2) * q(1 / (1 + x/2)).
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

}  // namespace tensormill::lower
