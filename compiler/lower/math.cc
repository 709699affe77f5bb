#include "compiler/lower/math.h"

#include "runtime/base/error.h"

namespace tensormill::lower {

using te::Expr;
using te::ExprOp;

bool is_vector_math(ExprOp op) { return op >= ExprOp::kExp && op <= ExprOp::kPow; }

Expr f64(const Expr& like, double value) { return te::float_imm(DType::kFloat64, value, like->type.lanes); }
Expr i64(const Expr& like, int64_t value) { return te::int_imm(DType::kInt64, value, like->type.lanes); }

Expr multiply_add(const Expr& a, const Expr& b, const Expr& c, const MathContext& context) {
  return context.use_fma ? te::fma(a, b, c) : a * b + c;
}

Expr polynomial(const Expr& x, const double* coefficients, int count, const MathContext& context) {
  Expr sum = f64(x, coefficients[count - 1]);
  for (int i = count - 2; i >= 0; --i) sum = multiply_add(sum, x, f64(x, coefficients[i]), context);
  return sum;
}

Expr magnitude(const Expr& x) { return te::make(ExprOp::kAbs, {x}); }

Expr with_sign(const Expr& value, const Expr& sign) {
  const Expr bits = te::reinterpret(DType::kInt64, sign);
  const Expr sign_bit = te::make(ExprOp::kBitAnd, {bits, i64(sign, INT64_MIN)});
  return te::reinterpret(DType::kFloat64,
                         te::make(ExprOp::kBitOr, {te::reinterpret(DType::kInt64, value), sign_bit}));
}

Two add_smaller(const Expr& a, const Expr& b) {
  const Expr sum = a + b;
  return {sum, b - (sum - a)};
}

// Knuth, "The Art of Computer Programming", volume 2, 4.2.2.
Two two_sum(const Expr& a, const Expr& b) {
  const Expr sum = a + b;
  const Expr of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

Two two_product(const Expr& a, const Expr& b, const MathContext& context) {
  const Expr product = a * b;
  if (context.use_fma) return {product, te::fma(a, b, -product)};
  // Halves of 26 bits, whose products are exact (Dekker 1971, "A floating-point technique for extending the
  // available precision").
  const auto split = [](const Expr& value) {
    const Expr scaled = value * f64(value, 0x1p27 + 1);
    const Expr high = scaled - (scaled - value);
    return Two{high, value - high};
  };
  const Two x = split(a), y = split(b);
  const Expr rest = ((x.high * y.high - product) + x.high * y.low) + x.low * y.high;
  return {product, rest + x.low * y.low};
}

Rounded round_small(const Expr& x) {
  const Expr shifted = x + f64(x, 0x1.8p52);
  return {shifted - f64(x, 0x1.8p52), te::reinterpret(DType::kInt64, shifted)};
}

namespace {

Expr evaluate(ExprOp op, const std::vector<Expr>& args, const MathContext& context) {
  switch (op) {
    case ExprOp::kExp:
      return math_exp(args[0], context);
    case ExprOp::kLog:
      return math_log(args[0], context);
    case ExprOp::kTanh:
      return math_tanh(args[0], context);
    case ExprOp::kErf:
      return math_erf(args[0], context);
    case ExprOp::kErfc:
      return math_erfc(args[0], context);
    case ExprOp::kSigmoid:
      return math_sigmoid(args[0], context);
    case ExprOp::kSin:
      return math_sin(args[0], context);
    case ExprOp::kCos:
      return math_cos(args[0], context);
    case ExprOp::kTan:
      return math_tan(args[0], context);
    case ExprOp::kAsin:
      return math_asin(args[0], context);
    case ExprOp::kAcos:
      return math_acos(args[0], context);
    case ExprOp::kAtan:
      return math_atan(args[0], context);
    case ExprOp::kSinh:
      return math_sinh(args[0], context);
    case ExprOp::kCosh:
      return math_cosh(args[0], context);
    case ExprOp::kPow:
      return math_pow(args[0], args[1], context);
    default:
      TM_CHECK(false, "no vector math operator");
  }
}

}  // namespace

Expr legalize_math(ExprOp op, const std::vector<Expr>& args, const target::CpuFacts& facts) {
  const DType dtype = args[0]->type.dtype;
  if (dtype == DType::kFloat32) {
    const MathContext context{facts.fma, true, facts.scaling};
    if (op == ExprOp::kExp) return math32_exp(args[0], context);
    if (op == ExprOp::kSigmoid) return math32_sigmoid(args[0], context);
    if (op == ExprOp::kTanh) return math32_tanh(args[0], context);
    if (op == ExprOp::kErf) return math32_erf(args[0], context);
  }
  if (op == ExprOp::kPow && !is_float(dtype)) return math_integer_pow(args[0], args[1]);
  std::vector<Expr> wide;
  for (const Expr& arg : args) wide.push_back(te::cast(DType::kFloat64, arg));
  return te::cast(dtype, evaluate(op, wide, {facts.fma, dtype != DType::kFloat64}));
}

}  // namespace tensormill::lower
