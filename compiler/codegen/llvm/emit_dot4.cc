#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/codegen/llvm/kernel_emitter.h"

namespace tensormill::codegen {

namespace {

/// The instruction's form for so many lanes, or not_intrinsic where the target has none.
llvm::Intrinsic::ID dot4_of(const TargetTraits& traits, unsigned lanes) {
  if (lanes == 16 && traits.dot4_512) return llvm::Intrinsic::x86_avx512_vpdpbusd_512;
  if (lanes == 8 && traits.dot4_256) return llvm::Intrinsic::x86_avx512_vpdpbusd_256;
  if (lanes == 4 && traits.dot4_256) return llvm::Intrinsic::x86_avx512_vpdpbusd_128;
  return llvm::Intrinsic::not_intrinsic;
}

}  // namespace

/// c + dot4(a, b) as one instruction where `node` has that form, else null. Integers wrap, so the order in
/// which the products are added does not matter.
llvm::Value* KernelEmitter::emit_dot4_sum(const te::ExprNode& node) {
  for (size_t side = 2; side-- > 0;) {
    const te::ExprNode& dot = *node.args[side];
    if (dot.op != te::ExprOp::kDot4) continue;
    llvm::Value* sum = emit_expr(node.args[1 - side]);
    llvm::Value* a = emit_expr(dot.args[0]);
    return emit_dot4(a, emit_expr(dot.args[1]), sum);
  }
  return nullptr;
}

llvm::Value* KernelEmitter::emit_dot4(llvm::Value* a, llvm::Value* b, llvm::Value* sum) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(a->getType());
  const llvm::Intrinsic::ID id = dot4_of(traits_, vector == nullptr ? 1 : vector->getNumElements());
  if (id != llvm::Intrinsic::not_intrinsic)
    return builder_.CreateIntrinsic(id, {}, std::vector<llvm::Value*>{sum, a, b});
  // Byte by byte: products of 8-bit values fit 16 bits, for which instruction selection has short forms.
  for (int64_t shift = 0; shift < 32; shift += 8) {
    llvm::Value* left = builder_.CreateAnd(builder_.CreateLShr(a, int_like(a, shift)), int_like(a, 255));
    llvm::Value* right = builder_.CreateAShr(builder_.CreateShl(b, int_like(b, 24 - shift)), int_like(b, 24));
    sum = builder_.CreateAdd(sum, builder_.CreateMul(left, right));
  }
  return sum;
}

}  // namespace tensormill::codegen
