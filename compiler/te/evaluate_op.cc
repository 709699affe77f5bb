#include <bit>
#include <cmath>

#include "compiler/te/expr.h"
#include "compiler/te/op_class.h"
#include "compiler/te/scalar_ops.h"
#include "runtime/base/error.h"
#include "runtime/base/round_to_odd.h"

namespace tensormill::te {
namespace {

Scalar of_int(int64_t value) { return {value, 0}; }
Scalar of_float(double value) { return {0, value}; }

[[noreturn]] void unknown(ExprOp op) {
  throw InternalError("operator " + std::string(expr_op_name(op)) + " has no scalar evaluation");
}

int64_t shift_left(DType dtype, int64_t a, int64_t count) {
  const int bits = dtype_info(dtype).bits;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t amount = static_cast<uint64_t>(count) & mask;
  if (amount >= static_cast<uint64_t>(bits)) return 0;
  return wrap_to(dtype, static_cast<int64_t>(static_cast<uint64_t>(a) << amount));
}

int64_t shift_right(DType dtype, int64_t a, int64_t count) {
  const int bits = dtype_info(dtype).bits;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t amount = static_cast<uint64_t>(count) & mask;
  if (dtype_info(dtype).is_signed) return a >> (amount >= static_cast<uint64_t>(bits) ? 63 : amount);
  return amount >= static_cast<uint64_t>(bits) ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> amount);
}

int64_t integer_division(ExprOp op, bool is_signed, int64_t a, int64_t b) {
  if (!is_signed) {
    if (b == 0) return 0;
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    const bool quotient = op == ExprOp::kDiv || op == ExprOp::kFloorDiv;
    return static_cast<int64_t>(quotient ? x / y : x % y);
  }
  switch (op) {
    case ExprOp::kDiv:
      return signed_div(a, b);
    case ExprOp::kMod:
      return signed_mod(a, b);
    case ExprOp::kFloorDiv:
      return signed_floordiv(a, b);
    default:
      return signed_floormod(a, b);
  }
}

/// Modulo 2^bits. A negative power is the quotient of 1 and the positive one, which division by zero makes 0.
int64_t integer_power(DType dtype, int64_t base, int64_t exponent) {
  if (dtype_info(dtype).is_signed && exponent < 0) {
    if (base == -1) return (exponent & 1) != 0 ? -1 : 1;
    return base == 1 ? 1 : 0;
  }
  uint64_t rest = static_cast<uint64_t>(exponent), square = static_cast<uint64_t>(base), power = 1;
  for (; rest != 0; rest >>= 1, square *= square) {
    if ((rest & 1) != 0) power *= square;
  }
  return static_cast<int64_t>(power);
}

Scalar evaluate_integer(ExprOp op, DType dtype, const Scalar* args, size_t count) {
  const int64_t a = args[0].i;
  const int64_t b = count > 1 ? args[1].i : 0;
  const bool is_signed = dtype_info(dtype).is_signed;
  const bool less = is_signed ? a < b : static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
  const auto wrapped = [dtype](int64_t value) { return of_int(wrap_to(dtype, value)); };
  switch (op) {
    case ExprOp::kAdd:
      return wrapped(wrapping_add(a, b));
    case ExprOp::kSub:
      return wrapped(wrapping_sub(a, b));
    case ExprOp::kMul:
      return wrapped(wrapping_mul(a, b));
    case ExprOp::kDiv:
    case ExprOp::kMod:
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod:
      return wrapped(integer_division(op, is_signed, a, b));
    case ExprOp::kPow:
      return wrapped(integer_power(dtype, a, b));
    case ExprOp::kMin:
      return of_int(less ? a : b);
    case ExprOp::kMax:
      return of_int(less ? b : a);
    case ExprOp::kBitAnd:
      return of_int(a & b);
    case ExprOp::kBitOr:
      return of_int(a | b);
    case ExprOp::kBitXor:
      return of_int(a ^ b);
    case ExprOp::kShl:
      return of_int(shift_left(dtype, a, b));
    case ExprOp::kShr:
      return of_int(shift_right(dtype, a, b));
    case ExprOp::kDot4:
      return of_int(dot_of_bytes(a, b));
    case ExprOp::kEq:
      return of_int(a == b);
    case ExprOp::kNe:
      return of_int(a != b);
    case ExprOp::kLt:
      return of_int(less);
    case ExprOp::kLe:
      return of_int(less || a == b);
    case ExprOp::kGt:
      return of_int(!less && a != b);
    case ExprOp::kGe:
      return of_int(!less);
    case ExprOp::kNeg:
      return wrapped(wrapping_neg(a));
    case ExprOp::kNot:
      return dtype == DType::kBool ? of_int(a == 0) : wrapped(~a);
    case ExprOp::kAbs:
      return wrapped(is_signed && a < 0 ? wrapping_neg(a) : a);
    default:
      unknown(op);
  }
}

double vector_math(ExprOp op, double a, double b) {
  switch (op) {
    case ExprOp::kExp:
      return std::exp(a);
    case ExprOp::kLog:
      return std::log(a);
    case ExprOp::kTanh:
      return std::tanh(a);
    case ExprOp::kErf:
      return std::erf(a);
    case ExprOp::kErfc:
      return std::erfc(a);
    case ExprOp::kSigmoid:
      return 1.0 / (1.0 + std::exp(-a));
    case ExprOp::kSin:
      return std::sin(a);
    case ExprOp::kCos:
      return std::cos(a);
    case ExprOp::kTan:
      return std::tan(a);
    case ExprOp::kAsin:
      return std::asin(a);
    case ExprOp::kAcos:
      return std::acos(a);
    case ExprOp::kAtan:
      return std::atan(a);
    case ExprOp::kSinh:
      return std::sinh(a);
    case ExprOp::kCosh:
      return std::cosh(a);
    case ExprOp::kPow:
      return std::pow(a, b);
    default:
      unknown(op);
  }
}

/// a * 2^b, of any b as large as matters.
template <typename T>
T scaled(T a, T b) {
  constexpr T kMost = 4096;
  if (std::isnan(b)) return b;
  return std::ldexp(a, static_cast<int>(std::min(std::max(b, -kMost), kMost)));
}

/// T is the type in which the operation is carried out: double for f64, float for the others.
template <typename T>
T float_arithmetic(ExprOp op, T a, T b, T c) {
  switch (op) {
    case ExprOp::kAdd:
      return a + b;
    case ExprOp::kSub:
      return a - b;
    case ExprOp::kMul:
      return a * b;
    case ExprOp::kDiv:
      return a / b;
    case ExprOp::kMod:
      return std::fmod(a, b);
    case ExprOp::kMin:
      return float_min(a, b);
    case ExprOp::kMax:
      return float_max(a, b);
    case ExprOp::kFma:
      return std::fma(a, b, c);
    case ExprOp::kScale:
      return scaled(a, b);
    case ExprOp::kReciprocal:
      return 1 / a;
    case ExprOp::kNeg:
      return -a;
    case ExprOp::kAbs:
      return std::fabs(a);
    case ExprOp::kSqrt:
      return std::sqrt(a);
    case ExprOp::kFloor:
      return std::floor(a);
    case ExprOp::kCeil:
      return std::ceil(a);
    case ExprOp::kTrunc:
      return std::trunc(a);
    case ExprOp::kRound:
      return std::nearbyint(a);
    default:
      return static_cast<T>(vector_math(op, a, b));
  }
}

Scalar evaluate_float(ExprOp op, DType dtype, const Scalar* args, size_t count) {
  const double a = args[0].f;
  const double b = count > 1 ? args[1].f : 0;
  const double c = count > 2 ? args[2].f : 0;
  switch (op) {
    case ExprOp::kEq:
      return of_int(a == b);
    case ExprOp::kNe:
      return of_int(a != b);
    case ExprOp::kLt:
      return of_int(a < b);
    case ExprOp::kLe:
      return of_int(a <= b);
    case ExprOp::kGt:
      return of_int(a > b);
    case ExprOp::kGe:
      return of_int(a >= b);
    default:
      break;
  }
  if (dtype == DType::kFloat64) return of_float(float_arithmetic<double>(op, a, b, c));
  const float result =
      float_arithmetic<float>(op, static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
  return of_float(round_to(dtype, result));
}

Scalar evaluate_cast(DType from, DType to, const Scalar& value) {
  const DTypeInfo& target = dtype_info(to);
  if (is_float(from)) {
    if (target.is_float) return of_float(round_to(to, value.f));
    if (to == DType::kBool) return of_int(value.f != 0);
    if (target.is_signed) return of_int(saturate_to_signed(value.f, target.bits));
    return of_int(static_cast<int64_t>(saturate_to_unsigned(value.f, target.bits)));
  }
  if (!target.is_float) return of_int(wrap_to(to, value.i));
  const bool is_signed = dtype_info(from).is_signed;
  const uint64_t bits = static_cast<uint64_t>(value.i);
  if (to == DType::kFloat64) {
    return of_float(is_signed ? static_cast<double>(value.i) : static_cast<double>(bits));
  }
  if (to == DType::kFloat32)
    return of_float(is_signed ? static_cast<float>(value.i) : static_cast<float>(bits));
  return of_float(round_to(to, rounded_to_odd(value.i, is_signed)));
}

Scalar evaluate_reinterpret(DType from, DType to, const Scalar& value) {
  uint64_t bits = static_cast<uint64_t>(value.i);
  switch (from) {
    case DType::kFloat64:
      bits = std::bit_cast<uint64_t>(value.f);
      break;
    case DType::kFloat32:
      bits = std::bit_cast<uint32_t>(static_cast<float>(value.f));
      break;
    case DType::kFloat16:
      bits = float_to_half(static_cast<float>(value.f));
      break;
    case DType::kBFloat16:
      bits = float_to_bfloat16(static_cast<float>(value.f));
      break;
    default:
      break;
  }
  switch (to) {
    case DType::kFloat64:
      return of_float(std::bit_cast<double>(bits));
    case DType::kFloat32:
      return of_float(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case DType::kFloat16:
      return of_float(half_to_float(static_cast<uint16_t>(bits)));
    case DType::kBFloat16:
      return of_float(bfloat16_to_float(static_cast<uint16_t>(bits)));
    default:
      return of_int(wrap_to(to, static_cast<int64_t>(bits)));
  }
}

}  // namespace

int64_t wrap_to(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kInt8:
      return static_cast<int8_t>(value);
    case DType::kInt16:
      return static_cast<int16_t>(value);
    case DType::kInt32:
      return static_cast<int32_t>(value);
    case DType::kUInt8:
      return static_cast<uint8_t>(value);
    case DType::kUInt16:
      return static_cast<uint16_t>(value);
    case DType::kUInt32:
      return static_cast<uint32_t>(value);
    case DType::kBool:
      return value != 0 ? 1 : 0;
    default:
      return value;
  }
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<float>(value);
    case DType::kFloat16:
      return half_to_float(float_to_half(rounded_to_odd(value)));
    case DType::kBFloat16:
      return bfloat16_to_float(float_to_bfloat16(rounded_to_odd(value)));
    default:
      return value;
  }
}

Scalar evaluate_op(ExprOp op, DType arg_dtype, DType result_dtype, const Scalar* args, size_t count) {
  switch (op) {
    case ExprOp::kSelect:
      return args[0].i != 0 ? args[1] : args[2];
    case ExprOp::kCast:
      return evaluate_cast(arg_dtype, result_dtype, args[0]);
    case ExprOp::kReinterpret:
      return evaluate_reinterpret(arg_dtype, result_dtype, args[0]);
    case ExprOp::kBroadcast:
      return args[0];
    default:
      break;
  }
  return is_float(arg_dtype) ? evaluate_float(op, arg_dtype, args, count)
                             : evaluate_integer(op, arg_dtype, args, count);
}

}  // namespace tensormill::te
