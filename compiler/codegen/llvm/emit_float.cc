#include <llvm/IR/IntrinsicsX86.h>

#include <limits>

#include "compiler/codegen/llvm/kernel_emitter.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {

llvm::Value* KernelEmitter::emit_float(te::ExprOp op, DType dtype, const std::vector<llvm::Value*>& args) {
  llvm::Value* a = args[0];
  llvm::Value* b = args.size() > 1 ? args[1] : nullptr;
  switch (op) {
    case te::ExprOp::kAdd:
      return builder_.CreateFAdd(a, b);
    case te::ExprOp::kSub:
      return builder_.CreateFSub(a, b);
    case te::ExprOp::kMul:
      return builder_.CreateFMul(a, b);
    case te::ExprOp::kDiv:
      return builder_.CreateFDiv(a, b);
    case te::ExprOp::kMod:
      return emit_fmod(a, b);
    case te::ExprOp::kMin:
    case te::ExprOp::kMax:
      return emit_min_max(op == te::ExprOp::kMax, a, b);
    case te::ExprOp::kFma:
      return emit_fma(a, b, args[2]);
    case te::ExprOp::kScale:
    case te::ExprOp::kReciprocal:
      return emit_scaling(op, args);
    case te::ExprOp::kNeg:
      return builder_.CreateFNeg(a);
    case te::ExprOp::kAbs:
      return intrinsic(llvm::Intrinsic::fabs, {a});
    case te::ExprOp::kSqrt:
      return intrinsic(llvm::Intrinsic::sqrt, {a});
    case te::ExprOp::kFloor:
    case te::ExprOp::kCeil:
    case te::ExprOp::kTrunc:
    case te::ExprOp::kRound:
      return emit_rounding(op, a);
    case te::ExprOp::kEq:
      return builder_.CreateFCmpOEQ(a, b);
    case te::ExprOp::kNe:
      return builder_.CreateFCmpUNE(a, b);
    case te::ExprOp::kLt:
      return builder_.CreateFCmpOLT(a, b);
    case te::ExprOp::kLe:
      return builder_.CreateFCmpOLE(a, b);
    case te::ExprOp::kGt:
      return builder_.CreateFCmpOGT(a, b);
    case te::ExprOp::kGe:
      return builder_.CreateFCmpOGE(a, b);
    default:
      throw InternalError("operator " + std::string(te::expr_op_name(op)) + " on " +
                          std::string(dtype_name(dtype)));
  }
}

/// f16 and bf16: computed in f32 and rounded once. Sign operations touch the sign bit only.
llvm::Value* KernelEmitter::emit_narrow_float(te::ExprOp op, DType dtype,
                                              const std::vector<llvm::Value*>& args) {
  if (op == te::ExprOp::kNeg) return builder_.CreateXor(args[0], int_like(args[0], 0x8000));
  if (op == te::ExprOp::kAbs) return builder_.CreateAnd(args[0], int_like(args[0], 0x7fff));
  std::vector<llvm::Value*> wide;
  for (llvm::Value* arg : args) wide.push_back(widen_float(dtype, arg));
  if (op == te::ExprOp::kMin || op == te::ExprOp::kMax) {
    return emit_narrow_min_max(op == te::ExprOp::kMax, dtype, args, wide);
  }
  llvm::Value* result = emit_float(op, DType::kFloat32, wide);
  return result->getType()->getScalarType()->isFloatTy() ? narrow_float(dtype, result) : result;
}

/// Selects the bits of an operand. Equal operands differ at most in the sign of zero: of -0 and +0, `or` is
/// the smaller and `and` the larger. (A minimum or maximum in f32 would be narrowed by LLVM to one of f16,
/// which x86 gets wrong.)
llvm::Value* KernelEmitter::emit_narrow_min_max(bool is_max, DType dtype,
                                                const std::vector<llvm::Value*>& args,
                                                const std::vector<llvm::Value*>& wide) {
  llvm::Value* first =
      is_max ? builder_.CreateFCmpOGT(wide[0], wide[1]) : builder_.CreateFCmpOLT(wide[0], wide[1]);
  llvm::Value* both = is_max ? builder_.CreateAnd(args[0], args[1]) : builder_.CreateOr(args[0], args[1]);
  llvm::Value* result = builder_.CreateSelect(first, args[0], args[1]);
  result = builder_.CreateSelect(builder_.CreateFCmpOEQ(wide[0], wide[1]), both, result);
  const int64_t quiet_nan = dtype == DType::kFloat16 ? 0x7e00 : 0x7fc0;
  return builder_.CreateSelect(builder_.CreateFCmpUNO(wide[0], wide[1]), int_like(result, quiet_nan), result);
}

/// NaN if either is NaN, -0 < +0. x86's own minimum and maximum return the second operand when the operands
/// are equal or unordered, which is right for a constant first operand other than +0 (max) or -0 (min).
llvm::Value* KernelEmitter::emit_min_max(bool is_max, llvm::Value* a, llvm::Value* b) {
  const llvm::Intrinsic::ID id = is_max ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum;
  if (llvm::isa<llvm::Constant>(a)) std::swap(a, b);
  const auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  if (constant != nullptr && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* scalar = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  if (traits_.native_min_max || scalar == nullptr || scalar->isNaN()) {
    if (traits_.range && a->getType() == llvm::FixedVectorType::get(builder_.getFloatTy(), 16))
      return emit_range(is_max, a, b);
    return intrinsic(id, {a, b});
  }
  llvm::Value* first = is_max ? builder_.CreateFCmpOGT(b, a) : builder_.CreateFCmpOLT(b, a);
  llvm::Value* result = builder_.CreateSelect(first, b, a);
  const bool zero_is_first = scalar->isZero() && scalar->isNegative() != is_max;
  // max(-0, +0): adding +0 turns the -0 into +0 and changes nothing else. min(+0, -0) has no such shortcut.
  if (!zero_is_first) return result;
  return is_max ? builder_.CreateFAdd(result, float_like(result, 0.0)) : intrinsic(id, {a, b});
}

/// Of a NaN and a number the instruction takes the number, so NaN is put in by a mask: three instructions, of
/// which two wait for the operands, where LLVM's minimum and maximum have six in a chain.
llvm::Value* KernelEmitter::emit_range(bool is_max, llvm::Value* a, llvm::Value* b) {
  constexpr uint32_t kSignOfResult = 4, kCurrentRounding = 4;
  llvm::Value* range = builder_.CreateIntrinsic(
      llvm::Intrinsic::x86_avx512_mask_range_ps_512, {},
      {a, b, builder_.getInt32(kSignOfResult + (is_max ? 1 : 0)), llvm::PoisonValue::get(a->getType()),
       builder_.getInt16(0xffff), builder_.getInt32(kCurrentRounding)});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return builder_.CreateSelect(builder_.CreateFCmpUNO(a, b), float_like(a, nan), range);
}

/// Without instructions for it: adding and subtracting 2^(mantissa bits) rounds to even; floor, ceil and
/// trunc then correct by one. Values that are that large are integers already, and NaN.
llvm::Value* KernelEmitter::emit_rounding(te::ExprOp op, llvm::Value* a) {
  if (traits_.rounding) {
    const llvm::Intrinsic::ID id = op == te::ExprOp::kFloor   ? llvm::Intrinsic::floor
                                   : op == te::ExprOp::kCeil  ? llvm::Intrinsic::ceil
                                   : op == te::ExprOp::kTrunc ? llvm::Intrinsic::trunc
                                                              : llvm::Intrinsic::roundeven;
    return intrinsic(id, {a});
  }
  const bool is_double = a->getType()->getScalarType()->isDoubleTy();
  llvm::Value* magic = float_like(a, is_double ? 0x1p52 : 0x1p23);
  llvm::Value* magnitude = intrinsic(llvm::Intrinsic::fabs, {a});
  llvm::Value* rounded = builder_.CreateFSub(builder_.CreateFAdd(magnitude, magic), magic);
  llvm::Value* one = float_like(a, 1.0);
  llvm::Value* zero = float_like(a, 0.0);
  if (op == te::ExprOp::kTrunc) {
    llvm::Value* above = builder_.CreateFCmpOGT(rounded, magnitude);
    rounded = builder_.CreateFSub(rounded, builder_.CreateSelect(above, one, zero));
  } else if (op != te::ExprOp::kRound) {
    llvm::Value* with_sign = intrinsic(llvm::Intrinsic::copysign, {rounded, a});
    if (op == te::ExprOp::kFloor) {
      llvm::Value* above = builder_.CreateFCmpOGT(with_sign, a);
      rounded = builder_.CreateFSub(with_sign, builder_.CreateSelect(above, one, zero));
    } else {
      llvm::Value* below = builder_.CreateFCmpOLT(with_sign, a);
      rounded = builder_.CreateFAdd(with_sign, builder_.CreateSelect(below, one, zero));
    }
  }
  llvm::Value* result = intrinsic(llvm::Intrinsic::copysign, {rounded, a});
  return builder_.CreateSelect(builder_.CreateFCmpOLT(magnitude, magic), result, a);
}

/// One rounding. Without an instruction, f32 goes through f64: the product is exact there, the sum is rounded
/// to odd (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008), so that rounding to
/// f32 is right.
llvm::Value* KernelEmitter::emit_fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
  if (traits_.fma) return intrinsic(llvm::Intrinsic::fma, {a, b, c});
  if (a->getType()->getScalarType()->isDoubleTy()) {
    throw Error(
        ErrorCode::kNotSupported,
        "a fused multiply-add of f64 needs a target with the feature fma, which " + traits_.cpu + " lacks");
  }
  llvm::Type* wide = like(builder_.getDoubleTy(), a);
  llvm::Type* bits = like(builder_.getInt64Ty(), a);
  llvm::Value* product = builder_.CreateFMul(builder_.CreateFPExt(a, wide), builder_.CreateFPExt(b, wide));
  llvm::Value* addend = builder_.CreateFPExt(c, wide);
  llvm::Value* sum = builder_.CreateFAdd(product, addend);
  llvm::Value* part = builder_.CreateFSub(sum, product);
  llvm::Value* error = builder_.CreateFAdd(builder_.CreateFSub(product, builder_.CreateFSub(sum, part)),
                                           builder_.CreateFSub(addend, part));
  llvm::Value* zero = float_like(error, 0.0);
  llvm::Value* sum_bits = builder_.CreateBitCast(sum, bits);
  llvm::Value* is_even =
      builder_.CreateICmpEQ(builder_.CreateAnd(sum_bits, int_like(sum_bits, 1)), int_like(sum_bits, 0));
  llvm::Value* adjust = builder_.CreateAnd(builder_.CreateFCmpONE(error, zero), is_even);
  llvm::Value* away =
      builder_.CreateICmpEQ(builder_.CreateFCmpOGT(error, zero), builder_.CreateFCmpOGT(sum, zero));
  llvm::Value* step = builder_.CreateSelect(away, int_like(sum_bits, 1), int_like(sum_bits, -1));
  llvm::Value* odd = builder_.CreateAdd(sum_bits, builder_.CreateSelect(adjust, step, int_like(sum_bits, 0)));
  return builder_.CreateFPTrunc(builder_.CreateBitCast(odd, wide), a->getType());
}

/// C fmod, lane by lane; f32 goes through f64, which holds its remainders exactly.
llvm::Value* KernelEmitter::emit_fmod(llvm::Value* a, llvm::Value* b) {
  llvm::Type* wide = like(builder_.getDoubleTy(), a);
  llvm::Value* x = a->getType() == wide ? a : builder_.CreateFPExt(a, wide);
  llvm::Value* y = a->getType() == wide ? b : builder_.CreateFPExt(b, wide);
  llvm::Value* result = nullptr;
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(wide)) {
    result = llvm::PoisonValue::get(wide);
    for (uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
      llvm::Value* rest =
          emit_fmod_scalar(builder_.CreateExtractElement(x, lane), builder_.CreateExtractElement(y, lane));
      result = builder_.CreateInsertElement(result, rest, lane);
    }
  } else {
    result = emit_fmod_scalar(x, y);
  }
  return a->getType() == wide ? result : builder_.CreateFPTrunc(result, a->getType());
}

/// |x| is reduced by |y| times powers of two. A tiny y is scaled so that it stays normal: fmod(x, y) is
/// fmod(fmod(x, y * 2^120), y), and the outer one is computed with both operands scaled, which is exact.
llvm::Value* KernelEmitter::emit_fmod_scalar(llvm::Value* a, llvm::Value* b) {
  llvm::Value* x = intrinsic(llvm::Intrinsic::fabs, {a});
  llvm::Value* y = intrinsic(llvm::Intrinsic::fabs, {b});
  llvm::Value* infinity = float_like(x, std::numeric_limits<double>::infinity());
  llvm::Value* zero = float_like(x, 0.0);
  llvm::Value* one = float_like(x, 1.0);
  llvm::Value* defined = builder_.CreateAnd(
      builder_.CreateFCmpOLT(x, infinity),
      builder_.CreateAnd(builder_.CreateFCmpOGT(y, zero), builder_.CreateFCmpORD(y, zero)));
  llvm::Value* tiny = builder_.CreateFCmpOLT(y, float_like(y, 0x1p-900));
  llvm::Value* scale = builder_.CreateSelect(tiny, float_like(x, 0x1p120), one);
  llvm::Value* divisor = builder_.CreateFMul(y, scale);
  llvm::Function* steps = fmod_steps();
  // An undefined pair must not enter the loop: 0 mod 1 ends at once.
  divisor = builder_.CreateSelect(defined, divisor, one);
  llvm::Value* rest = builder_.CreateCall(steps, {builder_.CreateSelect(defined, x, zero), divisor});
  rest = builder_.CreateCall(steps, {builder_.CreateFMul(rest, scale), divisor});
  rest = builder_.CreateFMul(rest, builder_.CreateSelect(tiny, float_like(x, 0x1p-120), one));
  llvm::Value* result = intrinsic(llvm::Intrinsic::copysign, {rest, a});
  return builder_.CreateSelect(defined, result, float_like(x, std::numeric_limits<double>::quiet_NaN()));
}

/// f64 fmod_steps(f64 r, f64 y), r >= 0, y > 0 and normal: while r >= y, subtracts the largest y * 2^k <= r.
llvm::Function* KernelEmitter::fmod_steps() {
  if (llvm::Function* existing = module_.getFunction("fmod_steps")) return existing;
  const llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  llvm::Type* f64 = builder_.getDoubleTy();
  llvm::Type* i64 = builder_.getInt64Ty();
  llvm::Function* function = llvm::Function::Create(llvm::FunctionType::get(f64, {f64, f64}, false),
                                                    llvm::Function::InternalLinkage, "fmod_steps", module_);
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(context_, "entry", function);
  llvm::BasicBlock* head = llvm::BasicBlock::Create(context_, "head", function);
  llvm::BasicBlock* body = llvm::BasicBlock::Create(context_, "body", function);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(context_, "done", function);
  llvm::Value* y = function->getArg(1);
  constexpr uint64_t kExponent = 0x7ff0000000000000;
  constexpr uint64_t kMantissa = 0x000fffffffffffff;
  builder_.SetInsertPoint(entry);
  llvm::Value* mantissa = builder_.CreateAnd(builder_.CreateBitCast(y, i64), builder_.getInt64(kMantissa));
  builder_.CreateBr(head);
  builder_.SetInsertPoint(head);
  llvm::PHINode* rest = builder_.CreatePHI(f64, 2);
  rest->addIncoming(function->getArg(0), entry);
  builder_.CreateCondBr(builder_.CreateFCmpOGE(rest, y), body, done);
  builder_.SetInsertPoint(body);
  llvm::Value* exponent = builder_.CreateAnd(builder_.CreateBitCast(rest, i64), builder_.getInt64(kExponent));
  llvm::Value* bits = builder_.CreateOr(mantissa, exponent);
  llvm::Value* high = builder_.CreateBitCast(bits, f64);
  llvm::Value* low =
      builder_.CreateBitCast(builder_.CreateSub(bits, builder_.getInt64(uint64_t{1} << 52)), f64);
  llvm::Value* subtrahend = builder_.CreateSelect(builder_.CreateFCmpOGT(high, rest), low, high);
  rest->addIncoming(builder_.CreateFSub(rest, subtrahend), body);
  builder_.CreateBr(head);
  builder_.SetInsertPoint(done);
  builder_.CreateRet(rest);
  return function;
}

}  // namespace tensormill::codegen
