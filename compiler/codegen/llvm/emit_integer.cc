#include "compiler/codegen/llvm/kernel_emitter.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {

llvm::Value* KernelEmitter::emit_integer(te::ExprOp op, DType dtype, llvm::Value* a, llvm::Value* b) {
  const bool is_signed = dtype_info(dtype).is_signed;
  switch (op) {
    case te::ExprOp::kAdd:
      return builder_.CreateAdd(a, b);
    case te::ExprOp::kSub:
      return builder_.CreateSub(a, b);
    case te::ExprOp::kMul:
      return builder_.CreateMul(a, b);
    case te::ExprOp::kDiv:
    case te::ExprOp::kMod:
    case te::ExprOp::kFloorDiv:
    case te::ExprOp::kFloorMod:
      return emit_division(op, is_signed, a, b);
    case te::ExprOp::kMin:
      return intrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, {a, b});
    case te::ExprOp::kMax:
      return intrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, {a, b});
    case te::ExprOp::kBitAnd:
      return builder_.CreateAnd(a, b);
    case te::ExprOp::kBitOr:
      return builder_.CreateOr(a, b);
    case te::ExprOp::kBitXor:
      return builder_.CreateXor(a, b);
    case te::ExprOp::kShl:
    case te::ExprOp::kShr:
      return emit_shift(op, is_signed, a, b);
    case te::ExprOp::kNeg:
      return builder_.CreateNeg(a);
    case te::ExprOp::kNot:
      return builder_.CreateNot(a);
    case te::ExprOp::kAbs:
      return is_signed ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder_.getFalse()) : a;
    default:
      return emit_integer_compare(op, is_signed, a, b);
  }
}

llvm::Value* KernelEmitter::emit_integer_compare(te::ExprOp op, bool is_signed, llvm::Value* a,
                                                 llvm::Value* b) {
  switch (op) {
    case te::ExprOp::kEq:
      return builder_.CreateICmpEQ(a, b);
    case te::ExprOp::kNe:
      return builder_.CreateICmpNE(a, b);
    case te::ExprOp::kLt:
      return is_signed ? builder_.CreateICmpSLT(a, b) : builder_.CreateICmpULT(a, b);
    case te::ExprOp::kLe:
      return is_signed ? builder_.CreateICmpSLE(a, b) : builder_.CreateICmpULE(a, b);
    case te::ExprOp::kGt:
      return is_signed ? builder_.CreateICmpSGT(a, b) : builder_.CreateICmpUGT(a, b);
    case te::ExprOp::kGe:
      return is_signed ? builder_.CreateICmpSGE(a, b) : builder_.CreateICmpUGE(a, b);
    default:
      throw InternalError("operator " + std::string(te::expr_op_name(op)) + " on integers");
  }
}

/// Division that is defined for all operands: the divisor is replaced where the machine would trap.
llvm::Value* KernelEmitter::emit_division(te::ExprOp op, bool is_signed, llvm::Value* a, llvm::Value* b) {
  const bool quotient = op == te::ExprOp::kDiv || op == te::ExprOp::kFloorDiv;
  const bool floor = op == te::ExprOp::kFloorDiv || op == te::ExprOp::kFloorMod;
  const auto* splat = llvm::dyn_cast<llvm::Constant>(b);
  const auto* constant = splat == nullptr
                             ? nullptr
                             : llvm::dyn_cast_or_null<llvm::ConstantInt>(
                                   splat->getType()->isVectorTy() ? splat->getSplatValue() : splat);
  if (constant != nullptr && floor && is_signed && constant->getValue().isPowerOf2() &&
      constant->getValue().isStrictlyPositive()) {
    const unsigned log = constant->getValue().logBase2();
    if (quotient) return builder_.CreateAShr(a, int_like(a, log));
    return builder_.CreateAnd(a, int_like(a, constant->getSExtValue() - 1));
  }
  const bool safe = constant != nullptr && !constant->isZero() && !(is_signed && constant->isMinusOne());
  llvm::Value* zero = int_like(a, 0);
  llvm::Value* one = int_like(a, 1);
  llvm::Value* by_zero = safe ? nullptr : builder_.CreateICmpEQ(b, zero);
  llvm::Value* divisor = b;
  if (!safe) {
    llvm::Value* trap = by_zero;
    // x / -1 wraps to -x and leaves no rest: INT_MIN / 1 and INT_MIN % 1 are the defined answers for INT_MIN,
    // and for other x the division by -1 itself is fine.
    if (is_signed) {
      const unsigned bits = a->getType()->getScalarSizeInBits();
      llvm::Value* lowest = llvm::ConstantInt::get(a->getType(), llvm::APInt::getSignedMinValue(bits));
      llvm::Value* overflow =
          builder_.CreateAnd(builder_.CreateICmpEQ(a, lowest), builder_.CreateICmpEQ(b, int_like(b, -1)));
      trap = builder_.CreateOr(trap, overflow);
    }
    divisor = builder_.CreateSelect(trap, one, b);
  }
  llvm::Value* result = nullptr;
  if (!is_signed) {
    result = quotient ? builder_.CreateUDiv(a, divisor) : builder_.CreateURem(a, divisor);
  } else if (!floor) {
    result = quotient ? builder_.CreateSDiv(a, divisor) : builder_.CreateSRem(a, divisor);
  } else {
    llvm::Value* rest = builder_.CreateSRem(a, divisor);
    llvm::Value* adjust = builder_.CreateAnd(builder_.CreateICmpNE(rest, zero),
                                             builder_.CreateICmpSLT(builder_.CreateXor(rest, divisor), zero));
    result = quotient ? builder_.CreateSub(builder_.CreateSDiv(a, divisor),
                                           builder_.CreateZExt(adjust, a->getType()))
                      : builder_.CreateAdd(rest, builder_.CreateSelect(adjust, divisor, zero));
  }
  // x mod 0 would be x mod 1 == 0 already; x / 0 would be x.
  return quotient && !safe ? builder_.CreateSelect(by_zero, zero, result) : result;
}

llvm::Value* KernelEmitter::emit_shift(te::ExprOp op, bool is_signed, llvm::Value* a, llvm::Value* b) {
  const int64_t bits = a->getType()->getScalarSizeInBits();
  llvm::Value* in_range = builder_.CreateICmpULT(b, int_like(b, bits));
  if (op == te::ExprOp::kShr && is_signed) {
    return builder_.CreateAShr(a, builder_.CreateSelect(in_range, b, int_like(b, bits - 1)));
  }
  llvm::Value* count = builder_.CreateSelect(in_range, b, int_like(b, 0));
  llvm::Value* shifted =
      op == te::ExprOp::kShl ? builder_.CreateShl(a, count) : builder_.CreateLShr(a, count);
  return builder_.CreateSelect(in_range, shifted, int_like(a, 0));
}

}  // namespace tensormill::codegen
