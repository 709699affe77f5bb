#include "compiler/codegen/llvm/kernel_emitter.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {
namespace {

static_assert(offsetof(tm_call, buffers) == 8 && offsetof(tm_call, dims) == 16 &&
              offsetof(tm_call, num_dims) == 24);
static_assert(offsetof(tm_call, shared_workspace) == 32 && offsetof(tm_call, worker_workspace) == 40);
static_assert(offsetof(tm_call, parallel) == 56 && offsetof(tm_call, error_index) == 64);

}  // namespace

KernelEmitter::KernelEmitter(const te::Function& function, const TargetTraits& traits, llvm::Module& module)
    : function_(function),
      traits_(traits),
      module_(module),
      context_(module.getContext()),
      builder_(context_) {}

void KernelEmitter::emit() {
  llvm::Function* body = declare_body();
  begin_frame(body);
  frame_.call = body->getArg(0);
  frame_.shared_workspace = body->getArg(1);
  frame_.worker_workspace = body->getArg(2);
  unsigned arg = 3;
  for (const te::Parameter& parameter : function_.parameters) {
    frame_.buffers[parameter.buffer.get()] = body->getArg(arg++);
  }
  for (const te::Var& dim : function_.dims) frame_.vars[dim.get()] = body->getArg(arg++);
  emit_stmt(function_.body);
  end_frame();
  emit_prologue(body);
}

/// i32 body(call, shared workspace, workspace of worker 0, buffers..., dims...)
llvm::Function* KernelEmitter::declare_body() {
  llvm::Type* pointer = builder_.getPtrTy();
  std::vector<llvm::Type*> types(3 + function_.parameters.size(), pointer);
  types.insert(types.end(), function_.dims.size(), builder_.getInt64Ty());
  llvm::Function* body = llvm::Function::Create(llvm::FunctionType::get(builder_.getInt32Ty(), types, false),
                                                llvm::Function::InternalLinkage, "body", module_);
  const llvm::Attribute align = llvm::Attribute::getWithAlignment(context_, llvm::Align(64));
  for (unsigned i = 1; i < 3; ++i) {
    body->addParamAttr(i, llvm::Attribute::NoAlias);
    body->addParamAttr(i, align);
  }
  for (size_t i = 0; i < function_.parameters.size(); ++i) {
    const unsigned arg = static_cast<unsigned>(3 + i);
    body->addParamAttr(arg, align);
    const int alias = i < function_.aliases.size() ? function_.aliases[i] : -1;
    if (alias < 0) body->addParamAttr(arg, llvm::Attribute::NoAlias);
  }
  return body;
}

void KernelEmitter::begin_frame(llvm::Function* function) {
  frame_ = {};
  memo_.clear();
  frame_.function = function;
  frame_.entry = llvm::BasicBlock::Create(context_, "entry", function);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "start", function));
}

/// Ends the function with 0, or with what a checked index found.
void KernelEmitter::end_frame() {
  llvm::BasicBlock* start = &*std::next(frame_.function->begin());
  if (frame_.failed != nullptr) {
    llvm::BasicBlock* bad = llvm::BasicBlock::Create(context_, "bad_index", frame_.function);
    llvm::BasicBlock* good = llvm::BasicBlock::Create(context_, "done", frame_.function);
    builder_.CreateCondBr(builder_.CreateLoad(builder_.getInt1Ty(), frame_.failed), bad, good);
    builder_.SetInsertPoint(bad);
    llvm::Value* target = load_call_field(frame_.call, offsetof(tm_call, error_index), builder_.getPtrTy());
    llvm::Value* index = builder_.CreateLoad(builder_.getInt64Ty(), frame_.bad_index);
    // Several tasks may fail at once: each index is one that is out of range.
    builder_.CreateAlignedStore(index, target, llvm::Align(8))->setAtomic(llvm::AtomicOrdering::Monotonic);
    emit_return(builder_.getInt32(TM_INDEX_OUT_OF_RANGE));
    builder_.SetInsertPoint(good);
  }
  emit_return(builder_.getInt32(TM_OK));
  builder_.SetInsertPoint(frame_.entry);
  builder_.CreateBr(start);
}

void KernelEmitter::emit_return(llvm::Value* code) { builder_.CreateRet(code); }

llvm::Value* KernelEmitter::load_call_field(llvm::Value* call, unsigned field, llvm::Type* type) {
  llvm::Value* pointer = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), call, field);
  llvm::LoadInst* load = builder_.CreateLoad(type, pointer);
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
  return load;
}

/// The exported function: refuses a call of another shape, loads the arguments and runs the body.
void KernelEmitter::emit_prologue(llvm::Function* body) {
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Function* kernel =
      llvm::Function::Create(llvm::FunctionType::get(builder_.getInt32Ty(), {pointer}, false),
                             llvm::Function::ExternalLinkage, function_.name, module_);
  begin_frame(kernel);
  llvm::Value* call = kernel->getArg(0);
  const auto differs = [&](unsigned field, uint32_t expected) {
    return builder_.CreateICmpNE(load_call_field(call, field, builder_.getInt32Ty()),
                                 builder_.getInt32(expected));
  };
  llvm::Value* wrong = differs(offsetof(tm_call, abi_version), TM_ABI_VERSION);
  wrong = builder_.CreateOr(
      wrong, differs(offsetof(tm_call, num_buffers), static_cast<uint32_t>(function_.parameters.size())));
  wrong = builder_.CreateOr(
      wrong, differs(offsetof(tm_call, num_dims), static_cast<uint32_t>(function_.dims.size())));
  llvm::BasicBlock* refuse = llvm::BasicBlock::Create(context_, "refuse", kernel);
  llvm::BasicBlock* accept = llvm::BasicBlock::Create(context_, "accept", kernel);
  builder_.CreateCondBr(wrong, refuse, accept);
  builder_.SetInsertPoint(refuse);
  emit_return(builder_.getInt32(TM_ABI_MISMATCH));
  builder_.SetInsertPoint(accept);
  std::vector<llvm::Value*> args = {call, load_call_field(call, offsetof(tm_call, shared_workspace), pointer),
                                    load_call_field(call, offsetof(tm_call, worker_workspace), pointer)};
  llvm::Value* buffers = load_call_field(call, offsetof(tm_call, buffers), pointer);
  for (size_t i = 0; i < function_.parameters.size(); ++i) {
    args.push_back(load_call_field(buffers, static_cast<unsigned>(8 * i), pointer));
  }
  llvm::Value* dims = load_call_field(call, offsetof(tm_call, dims), pointer);
  for (size_t i = 0; i < function_.dims.size(); ++i) {
    args.push_back(load_call_field(dims, static_cast<unsigned>(8 * i), builder_.getInt64Ty()));
  }
  emit_return(builder_.CreateCall(body, args));
  builder_.SetInsertPoint(frame_.entry);
  builder_.CreateBr(&*std::next(kernel->begin()));
}

llvm::AllocaInst* KernelEmitter::entry_alloca(llvm::Type* type, const char* name) {
  const llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  builder_.SetInsertPoint(frame_.entry);
  return builder_.CreateAlloca(type, nullptr, name);
}

}  // namespace tensormill::codegen
