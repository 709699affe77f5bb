// Scaling by powers of two and reciprocals: instructions of AVX-512 on 4, 8 or 16 lanes. Scalars and other
// vectors go through these too, so that an element is the same wherever it lies.
#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/codegen/llvm/kernel_emitter.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {

namespace {

constexpr unsigned kFewest = 4, kMost = 16;

struct Forms {
  llvm::Intrinsic::ID scale, estimate;
  unsigned mask_bits;
};

Forms forms_of(unsigned lanes) {
  if (lanes == 16)
    return {llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, llvm::Intrinsic::x86_avx512_rcp14_ps_512, 16};
  if (lanes == 8)
    return {llvm::Intrinsic::x86_avx512_mask_scalef_ps_256, llvm::Intrinsic::x86_avx512_rcp14_ps_256, 8};
  return {llvm::Intrinsic::x86_avx512_mask_scalef_ps_128, llvm::Intrinsic::x86_avx512_rcp14_ps_128, 8};
}

}  // namespace

llvm::Value* KernelEmitter::emit_scaling(te::ExprOp op, const std::vector<llvm::Value*>& args) {
  TM_CHECK(traits_.scaling && args[0]->getType()->getScalarType()->isFloatTy(),
           "instructions that scale are there");
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(args[0]->getType());
  if (vector == nullptr) {
    std::vector<llvm::Value*> wide;
    llvm::Type* type = llvm::FixedVectorType::get(args[0]->getType(), kFewest);
    for (llvm::Value* arg : args)
      wide.push_back(builder_.CreateInsertElement(llvm::PoisonValue::get(type), arg, uint64_t{0}));
    return builder_.CreateExtractElement(emit_scaling(op, wide), uint64_t{0});
  }
  const unsigned lanes = vector->getNumElements();
  if (lanes == 4 || lanes == 8 || lanes == 16) return emit_scaling_form(op, args);
  return by_parts(args, lanes < kFewest ? kFewest : kMost,
                  [&](const std::vector<llvm::Value*>& some) { return emit_scaling_form(op, some); });
}

llvm::Value* KernelEmitter::emit_scaling_form(te::ExprOp op, const std::vector<llvm::Value*>& args) {
  constexpr uint32_t kCurrentRounding = 4;
  llvm::Value* x = args[0];
  llvm::Type* type = x->getType();
  const Forms forms = forms_of(llvm::cast<llvm::FixedVectorType>(type)->getNumElements());
  llvm::Value* all = llvm::ConstantInt::getAllOnesValue(builder_.getIntNTy(forms.mask_bits));
  llvm::Value* none = llvm::Constant::getNullValue(type);
  if (op == te::ExprOp::kScale) {
    std::vector<llvm::Value*> operands = {x, args[1], none, all};
    if (forms.scale == llvm::Intrinsic::x86_avx512_mask_scalef_ps_512)
      operands.push_back(builder_.getInt32(kCurrentRounding));
    return builder_.CreateIntrinsic(forms.scale, {}, operands);
  }
  // One step of Newton's doubles the 14 bits of the estimate.
  llvm::Value* estimate =
      builder_.CreateIntrinsic(forms.estimate, {}, std::vector<llvm::Value*>{x, none, all});
  llvm::Value* error = emit_fma(builder_.CreateFNeg(x), estimate, float_like(x, 1.0));
  return emit_fma(error, estimate, estimate);
}

}  // namespace tensormill::codegen
