#include "compiler/ops/narrow_expr.h"

#include <cmath>
#include <limits>

namespace tensormill::ops {

namespace {

constexpr int kFloatMantissa = 23;
constexpr int kFloatBias = 127;

Expr i32(int64_t value) { return te::int_imm(DType::kInt32, value); }
Expr bit_and(const Expr& a, const Expr& b) { return te::make(te::ExprOp::kBitAnd, {a, b}); }
Expr bit_or(const Expr& a, const Expr& b) { return te::make(te::ExprOp::kBitOr, {a, b}); }
Expr shift_left(const Expr& a, int64_t count) { return te::make(te::ExprOp::kShl, {a, i32(count)}); }
Expr shift_right(const Expr& a, int64_t count) { return te::make(te::ExprOp::kShr, {a, i32(count)}); }
Expr bits_of(const Expr& value) { return te::reinterpret(DType::kInt32, value); }
Expr float_of(const Expr& bits) { return te::reinterpret(DType::kFloat32, bits); }
Expr abs_of(const Expr& value) { return te::make(te::ExprOp::kAbs, {value}); }

/// narrow_integer of i32.
Expr low_bits(const Expr& bits, DType dtype) {
  const int64_t sign = int64_t{1} << (value_bits(dtype) - 1);
  const Expr low = bit_and(bits, i32(2 * sign - 1));
  if (!dtype_info(dtype).is_signed) return low;
  return te::make(te::ExprOp::kBitXor, {low, i32(sign)}) - i32(sign);
}

/// An integer of 64 bits as one that f64 holds, and that rounds to fewer bits as it does: what f64 would lose
/// of it is the lowest bit that stays.
Expr held_by_double(const Expr& value) {
  const DType dtype = value->type.dtype;
  if (is_float(dtype) || dtype_info(dtype).bits < 64) return value;
  const auto number = [&](int64_t bits) { return te::int_imm(dtype, bits); };
  constexpr int64_t kExact = int64_t{1} << 53, kLost = 0x7ff;
  Expr is_large = value > number(kExact);
  if (dtype_info(dtype).is_signed) is_large = te::logical_or(is_large, value < number(-kExact));
  const Expr loses = te::logical_and(is_large, bit_and(value, number(kLost)) != number(0));
  return te::select(loses, bit_or(bit_and(value, number(~kLost)), number(kLost + 1)), value);
}

/// As f32, rounded to odd where f32 does not hold it: the next rounding is then the only one.
Expr odd_float(const Expr& value) {
  const DType dtype = value->type.dtype;
  const bool exact = dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16 ||
                     dtype_info(dtype).bits <= 16;
  if (exact) return narrow(value, DType::kFloat32);
  const Expr wide = narrow(held_by_double(value), DType::kFloat64);
  const Expr nearest = te::cast(DType::kFloat32, wide);
  const Expr back = te::cast(DType::kFloat64, nearest);
  const Expr larger = te::cast(DType::kInt32, abs_of(back) > abs_of(wide));
  // A NaN differs from itself and stays one with its lowest bit set.
  const Expr differs = te::cast(DType::kInt32, back != wide);
  return float_of(bit_or(bits_of(nearest) - larger, differs));
}

Expr encode_power(const Expr& bits, bool saturate, PowerRounding rounding) {
  const Expr exponent = shift_right(bits, kFloatMantissa);
  const Expr fraction = bit_and(bits, i32(0x7fffff));
  const Expr denormal = exponent == i32(0);
  Expr up = i32(0);
  if (rounding == PowerRounding::kUp)
    up = te::cast(DType::kInt32, fraction > te::select(denormal, i32(0x400000), i32(0)));
  if (rounding == PowerRounding::kNearest)
    up = te::cast(DType::kInt32, fraction >= te::select(denormal, i32(0x600000), i32(0x400000)));
  const Expr code = exponent + up;
  const Expr finite = saturate ? te::min(code, i32(254)) : code;
  return te::cast(DType::kUInt8, te::select(exponent == i32(255), i32(255), finite));
}

/// The code of a magnitude (the bits of a non-negative f32), unlimited.
Expr rounded_code(const Expr& magnitude, const NarrowFloat& format) {
  const int shift = kFloatMantissa - format.mantissa_bits;
  const Expr odd = bit_and(shift_right(magnitude, shift), i32(1));
  const Expr rounded = shift_right(magnitude + i32((int64_t{1} << (shift - 1)) - 1) + odd, shift);
  const Expr normal = rounded - i32(int64_t{kFloatBias - format.bias} << format.mantissa_bits);
  const double unit = std::ldexp(1.0, format.bias - 1 + format.mantissa_bits);
  const Expr scaled = float_of(magnitude) * te::float_imm(DType::kFloat32, unit);
  const Expr denormal = te::cast(DType::kInt32, te::make(te::ExprOp::kRound, {scaled}));
  const int64_t smallest_normal = int64_t{kFloatBias + 1 - format.bias} << kFloatMantissa;
  return te::select(magnitude >= i32(smallest_normal), normal, denormal);
}

Expr encode_float(const Expr& value, const NarrowFloat& format, bool saturate) {
  const Expr bits = bits_of(value);
  const Expr magnitude = bit_and(bits, i32(0x7fffffff));
  const Expr code = rounded_code(magnitude, format);
  const Expr sign = te::select(bits < i32(0), i32(int64_t{1} << format.sign_bit), i32(0));
  const bool has_limit = saturate || !format.has_nan;
  const Expr limited =
      te::select(code > i32(format.largest), i32(has_limit ? format.largest : format.overflow), code);
  Expr signed_code = bit_or(limited, sign);
  if (format.one_zero) {
    signed_code = te::select(code == i32(0), i32(0), signed_code);
    if (!has_limit) signed_code = te::select(code > i32(format.largest), i32(format.nan), signed_code);
  }
  const bool signs_nan = !format.one_zero && format.has_nan;
  const Expr nan = signs_nan ? bit_or(i32(format.nan), sign) : i32(format.nan);
  return te::cast(DType::kUInt8, te::select(magnitude > i32(0x7f800000), nan, signed_code));
}

}  // namespace

Expr decode_narrow_expr(const Expr& byte, DType from) {
  const Expr bits = te::cast(DType::kInt32, byte);
  if (is_narrow_integer(from)) return low_bits(bits, from);
  const Expr nan = te::float_imm(DType::kFloat32, std::numeric_limits<double>::quiet_NaN());
  if (from == kFloat8E8M0) {
    const Expr power = te::select(bits == i32(0), i32(0x400000), shift_left(bits, kFloatMantissa));
    return te::select(bits == i32(255), nan, float_of(power));
  }
  const NarrowFloat& format = narrow_float(from);
  const Expr magnitude = bit_and(bits, i32((int64_t{1} << format.sign_bit) - 1));
  // The fields as those of a float, whose exponent is then too small by the difference of the biases.
  const Expr fields = float_of(shift_left(magnitude, kFloatMantissa - format.mantissa_bits));
  const double scale = std::ldexp(1.0, kFloatBias - format.bias);
  const Expr finite = fields * te::float_imm(DType::kFloat32, scale);
  const Expr negative = bit_and(bits, i32(int64_t{1} << format.sign_bit)) != i32(0);
  Expr value = te::select(negative, -finite, finite);
  if (format.one_zero) return te::select(bits == i32(format.nan), nan, value);
  if (format.has_infinity) {
    const Expr infinity = te::float_imm(DType::kFloat32, std::numeric_limits<double>::infinity());
    value = te::select(magnitude == i32(format.overflow), te::select(negative, -infinity, infinity), value);
    return te::select(magnitude > i32(format.overflow), nan, value);
  }
  return format.has_nan ? te::select(magnitude > i32(format.largest), nan, value) : value;
}

Expr encode_narrow_expr(const Expr& value, DType to, bool saturate, PowerRounding rounding) {
  if (!is_float(to)) {
    const Expr whole = value->type.is_float() ? te::make(te::ExprOp::kRound, {widen(value)}) : value;
    return te::cast(storage_dtype(to), low_bits(narrow(whole, DType::kInt32), to));
  }
  const Expr odd = odd_float(value);
  if (to == kFloat8E8M0) return encode_power(bit_and(bits_of(odd), i32(0x7fffffff)), saturate, rounding);
  return encode_float(odd, narrow_float(to), saturate);
}

}  // namespace tensormill::ops
