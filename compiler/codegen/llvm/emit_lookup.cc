// Lookups of bytes in a table of 256: in registers where the target has instructions for vectors of bytes, of
// whole vectors; scalars, and vectors of other targets, lane by lane in memory.
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <span>

#include "compiler/codegen/llvm/kernel_emitter.h"
#include "runtime/base/digest.h"

namespace tensormill::codegen {

llvm::Value* KernelEmitter::emit_lookup(const te::ByteTable& table, llvm::Value* index) {
  if (!index->getType()->isVectorTy() || !(traits_.lookup_512 || traits_.lookup_128))
    return lookup_in_memory(table, index);
  // Shorter forms of x86's instruction hold less of the table, so that short vectors are widened, too.
  return by_parts({index}, traits_.lookup_512 ? 64 : 16, [&](const std::vector<llvm::Value*>& some) {
    return traits_.lookup_512 ? lookup_64_lanes(table, some[0]) : lookup_16_lanes(table, some[0]);
  });
}

/// Each instruction looks up in half of the table by the index's seven lowest bits; the highest chooses.
llvm::Value* KernelEmitter::lookup_64_lanes(const te::ByteTable& table, llvm::Value* index) {
  const auto half = [&](size_t first) {
    llvm::Value* operands[] = {part_of_table(table, first, 64), index, part_of_table(table, first + 64, 64)};
    return builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_qi_512, {}, operands);
  };
  llvm::Value* low = half(0);
  llvm::Value* high = half(128);
  return builder_.CreateSelect(builder_.CreateICmpSLT(index, int_like(index, 0)), high, low);
}

/// Each instruction looks up in a quarter of the table, and leaves lanes alone whose index is past it; the
/// first makes those zero. Indices that are less than where a quarter begins wrap, and are past it as well.
llvm::Value* KernelEmitter::lookup_16_lanes(const te::ByteTable& table, llvm::Value* index) {
  llvm::Value* result = nullptr;
  for (size_t first = 0; first < table.size(); first += 64) {
    std::vector<llvm::Value*> operands;
    if (result != nullptr) operands.push_back(result);
    for (size_t row = 0; row < 64; row += 16) operands.push_back(part_of_table(table, first + row, 16));
    operands.push_back(builder_.CreateSub(index, int_like(index, static_cast<int64_t>(first))));
    result = builder_.CreateIntrinsic(
        first == 0 ? llvm::Intrinsic::aarch64_neon_tbl4 : llvm::Intrinsic::aarch64_neon_tbx4,
        {index->getType()}, operands);
  }
  return result;
}

llvm::Value* KernelEmitter::lookup_in_memory(const te::ByteTable& table, llvm::Value* index) {
  llvm::Constant* base = stored_table(table);
  llvm::Type* byte = builder_.getInt8Ty();
  const auto element = [&](llvm::Value* at) {
    llvm::Value* pointer =
        builder_.CreateInBoundsGEP(byte, base, builder_.CreateZExt(at, builder_.getInt64Ty()));
    return builder_.CreateAlignedLoad(byte, pointer, llvm::Align(1));
  };
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(index->getType());
  if (vector == nullptr) return element(index);
  llvm::Value* result = llvm::PoisonValue::get(index->getType());
  for (uint64_t lane = 0; lane < vector->getNumElements(); ++lane)
    result = builder_.CreateInsertElement(result, element(builder_.CreateExtractElement(index, lane)), lane);
  return result;
}

/// The table beside the code, once a module. It is not unnamed_addr: bytes that end with their only zero
/// would be taken for a string, and merged with others.
llvm::Constant* KernelEmitter::stored_table(const te::ByteTable& table) {
  llvm::Constant* bytes = llvm::ConstantDataArray::get(context_, llvm::ArrayRef<uint8_t>(table));
  const std::string name = "table." + Digest::of(std::as_bytes(std::span(table))).hex();
  auto* global = llvm::cast<llvm::GlobalVariable>(module_.getOrInsertGlobal(name, bytes->getType()));
  if (!global->hasInitializer()) {
    global->setInitializer(bytes);
    global->setConstant(true);
    global->setLinkage(llvm::GlobalValue::PrivateLinkage);
    global->setAlignment(llvm::Align(64));
  }
  return global;
}

llvm::Constant* KernelEmitter::part_of_table(const te::ByteTable& table, size_t first, size_t count) {
  return llvm::ConstantDataVector::get(context_, llvm::ArrayRef<uint8_t>(table).slice(first, count));
}

}  // namespace tensormill::codegen
