#include <cmath>

#include "compiler/codegen/llvm/kernel_emitter.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {
namespace {

bool is_narrow(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

/// The type with the lanes of `shape`.
llvm::Type* lanes_of(llvm::Type* scalar, llvm::Value* shape) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape->getType());
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

/// f64 as f32, rounded to odd (runtime/base/round_to_odd.h), so that the next rounding is the only one.
llvm::Value* odd_float(llvm::IRBuilder<>& builder, llvm::Value* value) {
  llvm::Type* bits_type = lanes_of(builder.getInt32Ty(), value);
  llvm::Value* nearest = builder.CreateFPTrunc(value, lanes_of(builder.getFloatTy(), value));
  llvm::Value* back = builder.CreateFPExt(nearest, value->getType());
  llvm::Value* larger = builder.CreateFCmpOGT(builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                              builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value));
  llvm::Value* bits = builder.CreateBitCast(nearest, bits_type);
  llvm::Value* down = builder.CreateSub(bits, builder.CreateZExt(larger, bits_type));
  llvm::Value* odd = builder.CreateOr(down, llvm::ConstantInt::get(bits_type, 1));
  // Of a NaN the payload stays.
  llvm::Value* differs = builder.CreateFCmpONE(back, value);
  return builder.CreateBitCast(builder.CreateSelect(differs, odd, bits), nearest->getType());
}

/// An integer as f64; what that would lose of 64 bits is its lowest bit that f64 keeps.
llvm::Value* odd_double(llvm::IRBuilder<>& builder, const DTypeInfo& from, llvm::Value* value) {
  llvm::Type* type = value->getType();
  llvm::Type* wide = lanes_of(builder.getDoubleTy(), value);
  if (from.bits == 64) {
    const auto number = [&](uint64_t bits) { return llvm::ConstantInt::get(type, bits); };
    constexpr uint64_t kExact = uint64_t{1} << 53, kLost = 0x7ff;
    llvm::Value* from_zero = from.is_signed ? builder.CreateAdd(value, number(kExact)) : value;
    llvm::Value* is_exact = builder.CreateICmpULE(from_zero, number(from.is_signed ? 2 * kExact : kExact));
    llvm::Value* loses = builder.CreateICmpNE(builder.CreateAnd(value, number(kLost)), number(0));
    llvm::Value* odd = builder.CreateOr(builder.CreateAnd(value, number(~kLost)), number(kLost + 1));
    value = builder.CreateSelect(builder.CreateAnd(loses, builder.CreateNot(is_exact)), odd, value);
  }
  return from.is_signed ? builder.CreateSIToFP(value, wide) : builder.CreateUIToFP(value, wide);
}

}  // namespace

llvm::Value* KernelEmitter::emit_cast(DType from, DType to, llvm::Value* value) {
  if (from == to) return value;
  llvm::Type* type = like(element_type(to), value);
  if (is_narrow(from)) {
    return to == DType::kFloat32 ? widen_float(from, value)
                                 : emit_cast(DType::kFloat32, to, widen_float(from, value));
  }
  if (is_narrow(to)) {
    const DTypeInfo& info = dtype_info(from);
    // What float16 holds of integers float32 holds, too.
    const bool is_wide = !info.is_float && info.bits > 16 && to == DType::kBFloat16;
    if (is_wide) return narrow_float(to, odd_float(builder_, odd_double(builder_, info, value)));
    if (from == DType::kFloat64) return narrow_float(to, odd_float(builder_, value));
    return narrow_float(to, emit_cast(from, DType::kFloat32, value));
  }
  if (is_float(from)) {
    if (to == DType::kBool) return builder_.CreateFCmpUNE(value, float_like(value, 0.0));
    if (!is_float(to)) return float_to_integer(to, value);
    return to == DType::kFloat64 ? builder_.CreateFPExt(value, type) : builder_.CreateFPTrunc(value, type);
  }
  const bool is_signed = dtype_info(from).is_signed;
  if (is_float(to))
    return is_signed ? builder_.CreateSIToFP(value, type) : builder_.CreateUIToFP(value, type);
  if (to == DType::kBool) return builder_.CreateICmpNE(value, int_like(value, 0));
  return is_signed ? builder_.CreateSExtOrTrunc(value, type) : builder_.CreateZExtOrTrunc(value, type);
}

/// Saturating. The conversion itself is poison outside the range, and then another operand is selected.
llvm::Value* KernelEmitter::float_to_integer(DType to, llvm::Value* value) {
  const DTypeInfo& info = dtype_info(to);
  const unsigned bits = static_cast<unsigned>(info.bits);
  llvm::Type* type = like(element_type(to), value);
  if (bits <= 16) return float_to_short(to, value);
  const double high = std::ldexp(1.0, info.is_signed ? info.bits - 1 : info.bits);
  llvm::Value* converted =
      info.is_signed ? builder_.CreateFPToSI(value, type) : builder_.CreateFPToUI(value, type);
  llvm::Value* largest = llvm::ConstantInt::get(
      type, info.is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
  llvm::Value* lowest = llvm::ConstantInt::get(
      type, info.is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getMinValue(bits));
  const double low = info.is_signed ? -high : 0.0;
  llvm::Value* result =
      builder_.CreateSelect(builder_.CreateFCmpOGE(value, float_like(value, high)), largest, converted);
  result = builder_.CreateSelect(builder_.CreateFCmpOLT(value, float_like(value, low)), lowest, result);
  return builder_.CreateSelect(builder_.CreateFCmpUNO(value, value), llvm::ConstantInt::get(type, 0), result);
}

/// To 8 or 16 bits by way of 32, which vectors convert to at once: the value is limited first.
llvm::Value* KernelEmitter::float_to_short(DType to, llvm::Value* value) {
  const DTypeInfo& info = dtype_info(to);
  const int bits = info.is_signed ? info.bits - 1 : info.bits;
  llvm::Value* low = float_like(value, info.is_signed ? -std::ldexp(1.0, bits) : 0.0);
  llvm::Value* high = float_like(value, std::ldexp(1.0, bits) - 1);
  // A NaN becomes the lower limit, which is its result where that is 0.
  llvm::Value* limited = builder_.CreateSelect(builder_.CreateFCmpOGT(value, low), value, low);
  limited = builder_.CreateSelect(builder_.CreateFCmpOLT(limited, high), limited, high);
  llvm::Value* wide = builder_.CreateFPToSI(limited, like(builder_.getInt32Ty(), value));
  llvm::Value* result = builder_.CreateTrunc(wide, like(element_type(to), value));
  if (!info.is_signed) return result;
  return builder_.CreateSelect(builder_.CreateFCmpUNO(value, value), int_like(result, 0), result);
}

llvm::Value* KernelEmitter::emit_reinterpret(DType from, DType to, llvm::Value* value) {
  if (from == DType::kBool) value = builder_.CreateZExt(value, like(builder_.getInt8Ty(), value));
  if (to == DType::kBool) return builder_.CreateICmpNE(value, int_like(value, 0));
  return builder_.CreateBitCast(value, like(element_type(to), value));
}

llvm::Value* KernelEmitter::widen_float(DType from, llvm::Value* value) {
  llvm::Type* type = like(builder_.getFloatTy(), value);
  if (from == DType::kBFloat16) {
    llvm::Value* bits = builder_.CreateZExt(value, like(builder_.getInt32Ty(), value));
    return builder_.CreateBitCast(builder_.CreateShl(bits, int_like(bits, 16)), type);
  }
  if (!traits_.half_convert) return half_to_float_bits(value);
  return builder_.CreateFPExt(builder_.CreateBitCast(value, like(builder_.getHalfTy(), value)), type);
}

llvm::Value* KernelEmitter::narrow_float(DType to, llvm::Value* value) {
  llvm::Type* type = like(builder_.getInt16Ty(), value);
  if (to == DType::kFloat16) {
    if (!traits_.half_convert) return float_to_half_bits(value);
    return builder_.CreateBitCast(builder_.CreateFPTrunc(value, like(builder_.getHalfTy(), value)), type);
  }
  // bf16 in integer code always: the instruction of AVX512-BF16 flushes denormals.
  llvm::Value* bits = builder_.CreateBitCast(value, like(builder_.getInt32Ty(), value));
  llvm::Value* upper = builder_.CreateLShr(bits, int_like(bits, 16));
  llvm::Value* half =
      builder_.CreateAdd(builder_.CreateAnd(upper, int_like(bits, 1)), int_like(bits, 0x7fff));
  llvm::Value* rounded = builder_.CreateLShr(builder_.CreateAdd(bits, half), int_like(bits, 16));
  llvm::Value* quiet = builder_.CreateOr(upper, int_like(bits, 0x40));
  llvm::Value* result = builder_.CreateSelect(builder_.CreateFCmpUNO(value, value), quiet, rounded);
  return builder_.CreateTrunc(result, type);
}

/// f16 bits to f32: the fields are moved into place and multiplied by 2^112, which also normalizes denormals.
llvm::Value* KernelEmitter::half_to_float_bits(llvm::Value* value) {
  llvm::Type* bits_type = like(builder_.getInt32Ty(), value);
  llvm::Type* type = like(builder_.getFloatTy(), value);
  llvm::Value* wide = builder_.CreateZExt(value, bits_type);
  llvm::Value* sign =
      builder_.CreateShl(builder_.CreateAnd(wide, int_like(wide, 0x8000)), int_like(wide, 16));
  llvm::Value* magnitude =
      builder_.CreateShl(builder_.CreateAnd(wide, int_like(wide, 0x7fff)), int_like(wide, 13));
  llvm::Value* scaled = builder_.CreateBitCast(magnitude, type);
  scaled = builder_.CreateFMul(scaled, float_like(scaled, 0x1p112));
  llvm::Value* special = builder_.CreateOr(magnitude, int_like(wide, 0x7f800000));
  llvm::Value* is_special = builder_.CreateICmpUGE(magnitude, int_like(wide, 0x7c00 << 13));
  llvm::Value* bits = builder_.CreateSelect(is_special, special, builder_.CreateBitCast(scaled, bits_type));
  return builder_.CreateBitCast(builder_.CreateOr(bits, sign), type);
}

/// f32 to f16 bits, half to even. Normal results are rounded by an integer addition, denormal ones by a float
/// addition whose exponent puts f16's last bit at f32's.
llvm::Value* KernelEmitter::float_to_half_bits(llvm::Value* value) {
  llvm::Type* bits_type = like(builder_.getInt32Ty(), value);
  llvm::Value* bits = builder_.CreateBitCast(value, bits_type);
  const auto constant = [&](int64_t number) { return int_like(bits, number); };
  llvm::Value* magnitude = builder_.CreateAnd(bits, constant(0x7fffffff));
  llvm::Value* sign = builder_.CreateLShr(builder_.CreateXor(bits, magnitude), constant(16));

  llvm::Value* is_nan = builder_.CreateICmpUGT(magnitude, constant(0x7f800000));
  llvm::Value* large = builder_.CreateSelect(is_nan, constant(0x7e00), constant(0x7c00));

  llvm::Value* magic = builder_.CreateBitCast(constant(0x3f000000), value->getType());
  llvm::Value* sum = builder_.CreateFAdd(builder_.CreateBitCast(magnitude, value->getType()), magic);
  llvm::Value* denormal = builder_.CreateSub(builder_.CreateBitCast(sum, bits_type), constant(0x3f000000));

  llvm::Value* odd = builder_.CreateAnd(builder_.CreateLShr(magnitude, constant(13)), constant(1));
  constexpr int64_t kRebias = (int64_t{15} - 127) * (1 << 23) + 0xfff;
  llvm::Value* normal = builder_.CreateAdd(builder_.CreateAdd(magnitude, constant(kRebias)), odd);
  normal = builder_.CreateLShr(normal, constant(13));

  llvm::Value* result =
      builder_.CreateSelect(builder_.CreateICmpULT(magnitude, constant(0x38800000)), denormal, normal);
  result = builder_.CreateSelect(builder_.CreateICmpUGE(magnitude, constant(0x47800000)), large, result);
  return builder_.CreateTrunc(builder_.CreateOr(result, sign), like(builder_.getInt16Ty(), value));
}

}  // namespace tensormill::codegen
