/// Vector math as arithmetic: each function is a polynomial or rational form on f64 lanes, rounded once to
/// the result type, so that f32 results are within 1 ulp. exp, sigmoid, tanh and erf of f32 stay in f32
/// lanes: within 4 ulp. Bounds for f64: exp, log, sigmoid, erf, erfc, atan, asin, acos, sinh, cosh, tanh,
/// sin, cos 4 ulp (sin, cos, tan for |x| <= 2^20, of f32 for |x| <= 2^31); pow 1 ulp, so that a power that
/// f64 holds is exact. pow of integers is taken modulo 2^bits. Special cases are C's: NaN, infinities, signed
/// zeros, results that are denormal or overflow. Thread-safety: pure functions.
#pragma once

#include "compiler/target/target.h"
#include "compiler/te/expr.h"

namespace tensormill::lower {

/// Arithmetic for one function's evaluation. `narrow`: 24 bits of precision suffice.
struct MathContext {
  bool use_fma = false;
  bool narrow = false;
  bool scaling = false;  ///< te's scale and reciprocal are instructions
};

bool is_vector_math(te::ExprOp op);
/// op(args) without vector math operators; the result has the type of args.
te::Expr legalize_math(te::ExprOp op, const std::vector<te::Expr>& args, const target::CpuFacts& facts);

// Each takes and gives f64 (vectors).
te::Expr math_exp(const te::Expr& x, const MathContext& context);
te::Expr math_log(const te::Expr& x, const MathContext& context);
te::Expr math_tanh(const te::Expr& x, const MathContext& context);
te::Expr math_sigmoid(const te::Expr& x, const MathContext& context);
te::Expr math_erf(const te::Expr& x, const MathContext& context);
te::Expr math_erfc(const te::Expr& x, const MathContext& context);
te::Expr math_sin(const te::Expr& x, const MathContext& context);
te::Expr math_cos(const te::Expr& x, const MathContext& context);
te::Expr math_tan(const te::Expr& x, const MathContext& context);
te::Expr math_asin(const te::Expr& x, const MathContext& context);
te::Expr math_acos(const te::Expr& x, const MathContext& context);
te::Expr math_atan(const te::Expr& x, const MathContext& context);
te::Expr math_sinh(const te::Expr& x, const MathContext& context);
te::Expr math_cosh(const te::Expr& x, const MathContext& context);
te::Expr math_pow(const te::Expr& x, const te::Expr& y, const MathContext& context);
/// e^(high + low), for a sum of which `low` is what rounding to `high` lost.
te::Expr math_exp_of_sum(const te::Expr& high, const te::Expr& low, const MathContext& context);
/// Takes and gives integers of one type.
te::Expr math_integer_pow(const te::Expr& x, const te::Expr& y);

// Each takes and gives f32 (vectors).
te::Expr math32_exp(const te::Expr& x, const MathContext& context);
te::Expr math32_sigmoid(const te::Expr& x, const MathContext& context);
te::Expr math32_tanh(const te::Expr& x, const MathContext& context);
te::Expr math32_erf(const te::Expr& x, const MathContext& context);

// ---- what they share
// ------------------------------------------------------------------------------------------
/// a constant as wide as `like`
te::Expr f64(const te::Expr& like, double value);
te::Expr i64(const te::Expr& like, int64_t value);
te::Expr multiply_add(const te::Expr& a, const te::Expr& b, const te::Expr& c, const MathContext& context);
/// coefficients[0] + x*(coefficients[1] + ...)
te::Expr polynomial(const te::Expr& x, const double* coefficients, int count, const MathContext& context);
te::Expr magnitude(const te::Expr& x);
/// |value| with the sign of `sign`; value >= 0.
te::Expr with_sign(const te::Expr& value, const te::Expr& sign);
/// A sum of two: `low` is what rounding to `high` lost.
struct Two {
  te::Expr high, low;
};
/// a + b where |a| >= |b| or a = 0.
Two add_smaller(const te::Expr& a, const te::Expr& b);
/// a + b of any two.
Two two_sum(const te::Expr& a, const te::Expr& b);
/// a * b; without a fused multiply-add for |a|, |b| < 2^500.
Two two_product(const te::Expr& a, const te::Expr& b, const MathContext& context);
/// The integer that a float of small magnitude rounds to (half to even): as float and as bits of x + 1.5 *
/// 2^52.
struct Rounded {
  te::Expr value;
  te::Expr bits;
};
Rounded round_small(const te::Expr& x);

}  // namespace tensormill::lower
