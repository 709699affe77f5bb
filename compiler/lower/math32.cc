// exp, sigmoid, tanh and erf on f32 lanes. Polynomials are minimax fits (Lawson's iteration on Chebyshev
// nodes in double), then rounded; the relative errors of the fits are below 6e-9 (erf: 1.4e-8), so that
// rounding dominates.
#include <initializer_list>

#include "compiler/lower/math.h"

namespace tensormill::lower {

using te::Expr;
using te::ExprOp;

namespace {

Expr f32(const Expr& like, double value) { return te::float_imm(DType::kFloat32, value, like->type.lanes); }
Expr i32(const Expr& like, int64_t value) { return te::int_imm(DType::kInt32, value, like->type.lanes); }

// Lowest power first.
Expr horner(const Expr& x, std::initializer_list<double> coefficients, const MathContext& context) {
  const double* next = coefficients.end() - 1;
  Expr sum = f32(x, *next);
  while (next != coefficients.begin()) sum = multiply_add(sum, x, f32(x, *--next), context);
  return sum;
}

Expr with_sign_of(const Expr& value, const Expr& sign) {
  const Expr bits = te::reinterpret(DType::kInt32, sign);
  const Expr sign_bit = te::make(ExprOp::kBitAnd, {bits, i32(sign, INT32_MIN)});
  return te::reinterpret(DType::kFloat32,
                         te::make(ExprOp::kBitOr, {te::reinterpret(DType::kInt32, value), sign_bit}));
}

// x = n * ln 2 + r: exp(r) and n, also as an integer.
struct Reduced {
  Expr value;
  Expr n;
  Expr exponent;
};

Reduced reduce_exp(const Expr& x, const MathContext& context) {
  constexpr double kMagic = 0x1.8p23;  // added and subtracted: rounds to an integer
  constexpr int64_t kMagicBits = 0x4b400000;
  const Expr shifted = multiply_add(x, f32(x, 0x1.715476p+0), f32(x, kMagic), context);
  const Expr n = shifted - f32(x, kMagic);
  // ln 2 in two parts; n times the first, of 10 bits, is exact.
  Expr r = multiply_add(n, f32(x, -0x1.63p-1), x, context);
  r = multiply_add(n, f32(x, 0x1.bd0106p-13), r, context);
  const Expr tail = horner(r, {0x1p-1, 0x1.55549p-3, 0x1.55545ep-5, 0x1.123b46p-7, 0x1.6db40cp-10}, context);
  return {multiply_add(r * r, tail, r, context) + f32(x, 1), n,
          te::reinterpret(DType::kInt32, shifted) - i32(x, kMagicBits)};
}

// 2^n for n in [-126, 127].
Expr power_of_two(const Expr& n) {
  return te::reinterpret(DType::kFloat32, te::make(ExprOp::kShl, {n + i32(n, 127), i32(n, 23)}));
}

// exp(x) for x in [-87, 88] or NaN.
Expr exp_normal(const Expr& x, const MathContext& context) {
  const Reduced reduced = reduce_exp(x, context);
  if (context.scaling) return te::make(ExprOp::kScale, {reduced.value, reduced.n});
  return reduced.value * power_of_two(reduced.exponent);
}

// exp(x) for x up to 90 or NaN.
Expr exp_below(const Expr& x, const MathContext& context) {
  // What is less than half of the smallest denormal is set to 0: to compute it would underflow, which is a
  // hundred times as slow as any other lane, and masked scores are full of it.
  const Expr vanishes = x < f32(x, -0x1.9fe368p+6);
  const Reduced reduced = reduce_exp(te::select(vanishes, f32(x, 0), x), context);
  if (context.scaling)
    return te::select(vanishes, f32(x, 0), te::make(ExprOp::kScale, {reduced.value, reduced.n}));
  // Two factors, so that neither overflows and a denormal result is rounded once.
  const Expr half = te::make(ExprOp::kShr, {reduced.exponent, i32(x, 1)});
  const Expr power = reduced.value * power_of_two(half) * power_of_two(reduced.exponent - half);
  return te::select(vanishes, f32(x, 0), power);
}

Expr divide(const Expr& x, const Expr& y, const MathContext& context) {
  return context.scaling ? x * te::make(ExprOp::kReciprocal, {y}) : x / y;
}

}  // namespace

Expr math32_exp(const Expr& x, const MathContext& context) {
  return exp_below(te::select(x > f32(x, 90), f32(x, 90), x), context);
}

Expr math32_sigmoid(const Expr& x, const MathContext& context) {
  const Expr z = exp_below(-magnitude(x), context);
  return divide(te::select(x >= f32(x, 0), f32(x, 1), z), f32(x, 1) + z, context);
}

Expr math32_tanh(const Expr& x, const MathContext& context) {
  const Expr z = x * x;
  const Expr p =
      horner(z, {-0x1.55552ep-2, 0x1.1105c6p-3, -0x1.b80a5cp-5, 0x1.50cc16p-6, -0x1.6f8d5ap-8}, context);
  const Expr near = x * multiply_add(z, p, f32(x, 1), context);
  const Expr size = te::min(magnitude(x), f32(x, 9.1));
  const Expr far = f32(x, 1) - divide(f32(x, 2), exp_normal(size + size, context) + f32(x, 1), context);
  return te::select(magnitude(x) < f32(x, 0.625), near, with_sign_of(far, x));
}

// x times one polynomial in x^2 - 7.25, which lies in [-7.25, 7.25]: around the middle the coefficients fall
// as fast as the powers grow, so that no sum cancels. From |x| = 3.81 on the product passes 1.
Expr math32_erf(const Expr& x, const MathContext& context) {
  const Expr u = te::min(multiply_add(x, x, f32(x, -7.25), context), f32(x, 7.25));
  const Expr slope =
      horner(u,
             {0x1.7c403p-2, -0x1.a2ae7ep-6, 0x1.56dff6p-9, -0x1.31a04ap-12, 0x1.13baaap-15, -0x1.e5f264p-19,
              0x1.99f266p-22, -0x1.44fe7ep-25, 0x1.dbc068p-29, -0x1.4fa2bap-32, 0x1.e11b14p-36,
              -0x1.15a358p-39, 0x1.73329p-44, -0x1.f7b856p-48, 0x1.49bab6p-50, -0x1.17329ep-54},
             context);
  return te::max(te::min(x * slope, f32(x, 1)), f32(x, -1));
}

}  // namespace tensormill::lower
