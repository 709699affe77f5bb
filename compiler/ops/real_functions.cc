#include "compiler/ops/real_functions.h"

#include <limits>
#include <vector>

#include "compiler/ops/te_util.h"

namespace tensormill::ops {

namespace {

Expr unop(te::ExprOp op, const Expr& x) { return te::make(op, {x}); }
Expr one(const Expr& x) { return constant_like(x, 1); }
Expr zero(const Expr& x) { return constant_like(x, 0); }
bool is_double(const Expr& x) { return x->type.dtype == DType::kFloat64; }

/// Lowest power first.
Expr polynomial(const Expr& x, const std::vector<double>& coefficients) {
  Expr sum = constant_like(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = sum * x + constant_like(x, coefficients[i]);
  return sum;
}

/// (atanh(s) - s) / s^3 of z = s^2, for |s| <= 0.1716: as many terms as f64 tells.
Expr atanh_rest(const Expr& z) {
  std::vector<double> coefficients;
  for (int n = 3; n <= 27; n += 2) coefficients.push_back(1.0 / n);
  return polynomial(z, coefficients);
}

/// f32, with the correction of the rounded sum (Kahan).
Expr short_log1p(const Expr& x) {
  const Expr u = x + one(x);
  const Expr corrected = unop(te::ExprOp::kLog, u) * (x / (u - one(x)));
  return te::select(u == one(x), x, te::select(u == largest_of(x->type.dtype), u, corrected));
}

/// f64: log(1 + high + low), where low is less than a rounding of high. Near 0 log(1 + f) = f - (f^2/2 - s
/// (f^2/2 + r)) with s = f / (2 + f), so that f is rounded no more; elsewhere what 1 + f loses is added.
Expr long_log1p(const Expr& f, const Expr& low) {
  const Expr s = f / (f + constant_like(f, 2));
  const Expr z = s * s;
  const Expr half_square = f * f * constant_like(f, 0.5);
  const Expr rest = constant_like(f, 2) * z * atanh_rest(z);
  const Expr near = f - (half_square - (s * (half_square + rest) + low / (f + one(f))));
  const Expr u = f + one(f);
  const Expr lost = te::select(f < one(f), f - (u - one(f)), one(f) - (u - f));
  const Expr far = unop(te::ExprOp::kLog, u) + (lost + low) / u;
  const Expr is_near = te::logical_and(f > constant_like(f, -0.29), f < constant_like(f, 0.41));
  const Expr is_whole = te::logical_or(u == zero(f), u == largest_of(f->type.dtype));
  return te::select(is_near, near, te::select(is_whole, unop(te::ExprOp::kLog, u), far));
}

/// log(1 + a + b), |a| >= |b|.
Expr log1p_of_sum(const Expr& a, const Expr& b) {
  const Expr sum = a + b;
  return is_double(a) ? long_log1p(sum, b - (sum - a)) : short_log1p(sum);
}

/// With the sign of x, -0 included, where `size` is of |x|.
Expr signed_like(const Expr& x, const Expr& size) {
  return te::select(x == zero(x), x, te::select(x < zero(x), -size, size));
}

/// log(2x), which asinh and acosh are past some size, as near as the type tells: their own formulas square x.
Expr far_or(const Expr& x, const Expr& near) {
  const Expr limit = constant_like(x, is_double(x) ? 0x1p28 : 0x1p13);
  const Expr far = unop(te::ExprOp::kLog, x) + constant_like(x, 0.69314718055994530942);
  return te::select(x > limit, far, near);
}

}  // namespace

Expr expm1_expr(const Expr& x) {
  const Expr u = unop(te::ExprOp::kExp, x);
  const Expr difference = u - one(x);
  if (is_double(x)) {
    // x + x^2 (1/2 + x/6 + ...) where the difference would lose digits.
    std::vector<double> coefficients;
    double term = 1;
    for (int n = 2; n <= 20; ++n) coefficients.push_back(term /= n);
    const Expr near = x + x * x * polynomial(x, coefficients);
    const Expr value = te::select(unop(te::ExprOp::kAbs, x) < constant_like(x, 0.7), near, difference);
    return te::select(x == zero(x), x, value);  // -0 stays
  }
  const Expr corrected = difference * (x / unop(te::ExprOp::kLog, u));
  // u == 1: x is tiny and is the answer; u - 1 == -1 or u infinite: the correction would be inf/inf.
  const Expr extreme = te::logical_or(difference == constant_like(x, -1), u == largest_of(x->type.dtype));
  return te::select(u == one(x), x, te::select(extreme, difference, corrected));
}

Expr log1p_expr(const Expr& x) { return is_double(x) ? long_log1p(x, zero(x)) : short_log1p(x); }

/// log1p of |x| + x^2 / (1 + sqrt(x^2 + 1)).
Expr asinh_expr(const Expr& x) {
  const Expr size = unop(te::ExprOp::kAbs, x);
  const Expr square = size * size;
  const Expr rest = square / (one(x) + unop(te::ExprOp::kSqrt, square + one(x)));
  return signed_like(x, far_or(size, log1p_of_sum(size, rest)));
}

/// log1p of t + sqrt(2t + t^2), t = x - 1. The root alone does not tell what is below -1.
Expr acosh_expr(const Expr& x) {
  const Expr t = x - one(x);
  const Expr root = unop(te::ExprOp::kSqrt, t * (t + constant_like(x, 2)));
  const Expr nan = constant_like(x, std::numeric_limits<double>::quiet_NaN());
  return te::select(x < one(x), nan, far_or(x, log1p_of_sum(root, t)));
}

/// log1p(2a / (1 - a)) / 2, a = |x|; of a < 1/2 that is 2a and a little more. Near 0 the series itself.
Expr atanh_expr(const Expr& x) {
  const Expr size = unop(te::ExprOp::kAbs, x), twice = size + size, rest = one(x) - size;
  const Expr middle = log1p_of_sum(twice, twice * size / rest), outer = log1p_expr(twice / rest);
  const Expr half = constant_like(x, 0.5);
  Expr value = half * te::select(size < half, middle, outer);
  if (is_double(x)) {
    const Expr z = size * size;
    value = te::select(size < constant_like(x, 0.17), size + size * z * atanh_rest(z), value);
  }
  return signed_like(x, value);
}

}  // namespace tensormill::ops
