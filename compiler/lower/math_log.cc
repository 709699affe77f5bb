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

// x = 2^k (1 + f), of a positive and finite x.
struct Split {
  Expr k, f;
};
Split split(const Expr& x) {
  const Expr tiny = x < f64(x, std::numeric_limits<double>::min());
  const Expr scaled = te::select(tiny, x * f64(x, 0x1p54), x);
  const Expr bits = te::reinterpret(DType::kInt64, scaled);
  const Expr exponent = te::make(ExprOp::kShr, {bits - i64(x, 0x3fe6a09e667f3bcd), i64(x, 52)});
  const Expr mantissa =
      te::reinterpret(DType::kFloat64, bits - te::make(ExprOp::kShl, {exponent, i64(x, 52)}));
  const Expr small_int =
      te::reinterpret(DType::kFloat64, exponent + i64(x, 0x4338000000000000)) - f64(x, 0x1.8p52);
  return {small_int - te::select(tiny, f64(x, 54), f64(x, 0)), mantissa - f64(x, 1)};
}

Expr log_positive(const Expr& x, const MathContext& context) {
  const auto [k, f] = split(x);
  const Expr s = f / (f + f64(x, 2));
  const Expr z = s * s;
  const Expr rest = polynomial(z, kLog, 8, context);
  const Expr half_square = f * f * f64(x, 0.5);
  const Expr low = multiply_add(s, half_square + rest, k * f64(x, kLn2Low), context);
  return k * f64(x, kLn2High) - ((half_square - low) - f);
}

// a * b of numbers in two parts.
Two product(const Two& a, const Two& b, const MathContext& context) {
  const Two main = two_product(a.high, b.high, context);
  return add_smaller(main.high, main.low + (a.high * b.low + a.low * b.high));
}

// c + x for a constant c in two parts that is larger than x.
Two plus(double high, double low, const Two& x) {
  const Two sum = add_smaller(f64(x.high, high), x.high);
  return {sum.high, sum.low + (x.low + f64(x.high, low))};
}

// log x to some 2^-68, of a positive and finite x: log(1 + f) = 2s (1 + z/3 + z^2/5 + ...) with s = f / (2 +
// f) and z = s^2, whose first terms are summed in two parts.
Two log_in_two(const Expr& x, const MathContext& context) {
  static constexpr double kRest[] = {1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
                                     1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29};
  const auto [k, f] = split(x);
  const Two divisor = add_smaller(f64(x, 2), f);
  const Expr s_high = f / divisor.high;
  const Two back = two_product(s_high, divisor.high, context);
  const Two s{s_high, (((f - back.high) - back.low) - s_high * divisor.low) / divisor.high};
  const Two z = product(s, s, context);
  const Expr rest = z.high * polynomial(z.high, kRest, 12, context);
  const Two fifth = plus(0.2, -0x1.999999999999ap-57, {rest, f64(x, 0)});
  const Two third = plus(1.0 / 3, 0x1.5555555555555p-56, product(z, fifth, context));
  const Two grown = product(s, product(z, third, context), context);
  const Two half = add_smaller(s.high, grown.high);
  const Expr half_low = half.low + (s.low + grown.low);
  // Where k is not 0, k ln 2 is the larger one.
  const Two sum = add_smaller(k * f64(x, kLn2High), half.high + half.high);
  const Expr low = sum.low + (half_low + half_low + k * f64(x, kLn2Low));
  return add_smaller(sum.high, low);
}

// |x|^y.
Expr power_of_size(const Expr& size, const Expr& y, const MathContext& context) {
  const Two log = log_in_two(size, context);
  const Expr infinity = f64(size, kInfinity);
  // 0, infinity and NaN have logarithms of one part.
  const Expr is_ordinary = te::logical_and(size > f64(size, 0), size < infinity);
  const Expr special = te::select(size == f64(size, 0), -infinity, size);
  const Expr high = te::select(is_ordinary, log.high, special);
  // A larger y gives 0, 1 or infinity as well; its product by a logarithm of two parts would overflow.
  const Expr limited = te::min(te::max(y, f64(y, -0x1p100)), f64(y, 0x1p100));
  const Two product = two_product(limited, high, context);
  const Expr low = product.low + limited * log.low;
  const Expr is_small = magnitude(product.high) < f64(size, 1000);
  return math_exp_of_sum(product.high, te::select(is_small, low, f64(size, 0)), context);
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
  const MathContext wide{context.use_fma, false};
  // Twice the bits of f32 need no second part.
  const Expr power =
      context.narrow ? math_exp(y * math_log(size, wide), wide) : power_of_size(size, y, context);
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

Expr math_integer_pow(const Expr& x, const Expr& y) {
  const DTypeInfo& info = dtype_info(x->type.dtype);
  const int lanes = x->type.lanes;
  // Unsigned: the same modulo 2^bits, and what is used twice gets a name, which addresses of i64 do not.
  const DType dtype = info.bits == 64   ? DType::kUInt64
                      : info.bits == 32 ? DType::kUInt32
                      : info.bits == 16 ? DType::kUInt16
                                        : DType::kUInt8;
  const auto number = [&](DType type, int64_t value) { return te::int_imm(type, value, lanes); };
  Expr square = te::cast(dtype, x), power = number(dtype, 1);
  const Expr bits = te::cast(dtype, y);
  const int64_t* known = te::as_int(y);
  for (int i = 0; i < info.bits - (info.is_signed ? 1 : 0); ++i) {
    if (known && (static_cast<uint64_t>(*known) >> i) == 0) break;
    const Expr bit =
        te::make(ExprOp::kBitAnd, {te::make(ExprOp::kShr, {bits, number(dtype, i)}), number(dtype, 1)});
    if (!known) power = te::select(bit != number(dtype, 0), power * square, power);
    if (known && ((*known >> i) & 1) != 0) power = power * square;
    square = square * square;
  }
  const Expr result = te::cast(info.dtype, power);
  if (!info.is_signed) return result;
  const auto own = [&](int64_t value) { return number(info.dtype, value); };
  const Expr odd = te::make(ExprOp::kBitAnd, {y, own(1)}) != own(0);
  const Expr inverse =
      te::select(x == own(-1), te::select(odd, own(-1), own(1)), te::select(x == own(1), own(1), own(0)));
  return te::select(y < own(0), inverse, result);
}

}  // namespace tensormill::lower
