#include "compiler/codegen/llvm/kernel_emitter.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {
namespace {

/// Register buffers dissolve into values when all their indices are constant; what does not is stack, of
/// which a kernel may use only a little.
constexpr int64_t kMaxRegisterBytes = 64 * 1024;

/// A loop around this many stores to registers is a tile that the schedule wrote out to fill them: more
/// copies of it side by side would share operands and not fit any more.
constexpr int kTileStores = 6;

int count_register_stores(const te::Stmt& stmt) {
  const bool here = stmt->op == te::StmtOp::kStore && stmt->buffer->scope == te::Scope::kRegister;
  int count = here ? 1 : 0;
  for (const te::Stmt& child : stmt->children) count += count_register_stores(child);
  if (stmt->body) count += count_register_stores(stmt->body);
  if (stmt->else_body) count += count_register_stores(stmt->else_body);
  return count;
}

void keep_rolled(llvm::Instruction& branch) {
  llvm::LLVMContext& context = branch.getContext();
  llvm::MDNode* option = llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"));
  llvm::MDNode* loop = llvm::MDNode::getDistinct(context, {nullptr, option});
  loop->replaceOperandWith(0, loop);
  branch.setMetadata(llvm::LLVMContext::MD_loop, loop);
}

}  // namespace

void KernelEmitter::emit_stmt(const te::Stmt& stmt) {
  switch (stmt->op) {
    case te::StmtOp::kFor:
      return stmt->for_kind == te::ForKind::kParallel ? emit_parallel(*stmt) : emit_for(*stmt);
    case te::StmtOp::kStore:
      return emit_store(*stmt);
    case te::StmtOp::kAllocate:
      return emit_allocate(*stmt);
    case te::StmtOp::kIf:
      return emit_if(*stmt);
    case te::StmtOp::kSeq:
      for (const te::Stmt& child : stmt->children) emit_stmt(child);
      return;
    case te::StmtOp::kLet:
      return emit_let(*stmt);
  }
}

void KernelEmitter::emit_for(const te::StmtNode& node) {
  TM_CHECK(node.for_kind == te::ForKind::kSerial,
           "a loop is still " + std::string(te::for_kind_name(node.for_kind)) + " at code generation");
  llvm::Value* begin = emit_root(node.min);
  llvm::Value* extent = emit_root(node.extent);
  llvm::Value* end = builder_.CreateAdd(begin, extent, "end", false, true);
  frame_.vars[node.var.get()] = begin;
  frame_.loops.push_back(&node);
  emit_prefetches(node, true);
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* body = llvm::BasicBlock::Create(context_, node.var->name, frame_.function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "after", frame_.function);
  builder_.CreateCondBr(builder_.CreateICmpSGT(extent, builder_.getInt64(0)), body, after);
  builder_.SetInsertPoint(body);
  llvm::PHINode* var = builder_.CreatePHI(builder_.getInt64Ty(), 2, node.var->name);
  var->addIncoming(begin, before);
  frame_.vars[node.var.get()] = var;
  emit_prefetches(node, false);
  emit_stmt(node.body);
  frame_.loops.pop_back();
  llvm::Value* next = builder_.CreateAdd(var, builder_.getInt64(1), "next", false, true);
  var->addIncoming(next, builder_.GetInsertBlock());
  llvm::Instruction* branch = builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), body, after);
  if (count_register_stores(node.body) >= kTileStores) keep_rolled(*branch);
  builder_.SetInsertPoint(after);
}

void KernelEmitter::emit_if(const te::StmtNode& node) {
  emit_skipped_prefetches(node.body);
  llvm::Value* condition = emit_root(node.condition);
  llvm::BasicBlock* then_block = llvm::BasicBlock::Create(context_, "then", frame_.function);
  llvm::BasicBlock* else_block = llvm::BasicBlock::Create(context_, "else", frame_.function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "after", frame_.function);
  builder_.CreateCondBr(condition, then_block, else_block);
  builder_.SetInsertPoint(then_block);
  emit_stmt(node.body);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(else_block);
  if (node.else_body) emit_stmt(node.else_body);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
}

void KernelEmitter::emit_allocate(const te::StmtNode& node) {
  const te::BufferNode& buffer = *node.buffer;
  llvm::Value* pointer = nullptr;
  if (buffer.scope == te::Scope::kRegister) {
    TM_CHECK(buffer.shape.size() == 1, "register buffer " + buffer.name + " is not flat");
    const int64_t* extent = te::as_int(buffer.shape[0]);
    TM_CHECK(extent != nullptr && *extent >= 0, "register buffer " + buffer.name + " has no constant extent");
    const int64_t bytes = *extent * static_cast<int64_t>(dtype_bytes(buffer.dtype));
    TM_CHECK(bytes <= kMaxRegisterBytes, "register buffer " + buffer.name + " has " + std::to_string(bytes) +
                                             " bytes, at most " + std::to_string(kMaxRegisterBytes));
    llvm::Type* type = llvm::ArrayType::get(memory_type(buffer.dtype, 1),
                                            static_cast<uint64_t>(std::max<int64_t>(*extent, 1)));
    llvm::AllocaInst* storage = entry_alloca(type, "registers");
    if (bytes >= 16) storage->setAlignment(llvm::Align(bytes >= 64 ? 64 : 16));
    pointer = storage;
  } else {
    TM_CHECK(buffer.scope != te::Scope::kParameter, "parameter " + buffer.name + " is allocated");
    TM_CHECK(node.offset >= 0 && node.offset % 64 == 0,
             "buffer " + buffer.name + " has workspace offset " + std::to_string(node.offset));
    const bool shared = buffer.scope == te::Scope::kSharedWorkspace;
    if (shared) shared_offsets_[node.buffer.get()] = node.offset;
    llvm::Value* base = shared ? frame_.shared_workspace : frame_.worker_workspace;
    pointer =
        builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), base, static_cast<uint64_t>(node.offset));
  }
  frame_.buffers[node.buffer.get()] = pointer;
  emit_stmt(node.body);
}

void KernelEmitter::emit_let(const te::StmtNode& node) {
  frame_.vars[node.var.get()] = emit_root(node.value);
  emit_stmt(node.body);
}

}  // namespace tensormill::codegen
