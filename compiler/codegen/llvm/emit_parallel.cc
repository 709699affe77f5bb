#include <set>

#include "compiler/codegen/llvm/kernel_emitter.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/error.h"

namespace tensormill::codegen {
namespace {

/// What a loop body uses and does not define, in order of first use.
class Captures {
public:
  std::vector<te::Var> vars;
  std::vector<te::Buffer> buffers;

  void visit(const te::Stmt& stmt) {
    if (stmt->op == te::StmtOp::kFor || stmt->op == te::StmtOp::kLet) defined_.insert(stmt->var.get());
    if (stmt->op == te::StmtOp::kAllocate) defined_.insert(stmt->buffer.get());
    for (const te::Expr* expr : {&stmt->min, &stmt->extent, &stmt->value, &stmt->condition, &stmt->mask}) {
      if (*expr) visit(*expr);
    }
    for (const te::Expr& index : stmt->indices) visit(index);
    if (stmt->op == te::StmtOp::kStore) use(stmt->buffer, buffers);
    for (const te::Stmt& child : stmt->children) visit(child);
    if (stmt->body) visit(stmt->body);
    if (stmt->else_body) visit(stmt->else_body);
  }

  void define(const te::Var& var) { defined_.insert(var.get()); }

private:
  void visit(const te::Expr& expr) {
    if (!seen_exprs_.insert(expr.get()).second) return;
    if (expr->op == te::ExprOp::kVar) use(expr->var, vars);
    if (expr->op == te::ExprOp::kLoad) use(expr->buffer, buffers);
    for (const te::Expr& arg : expr->args) visit(arg);
    if (expr->mask) visit(expr->mask);
  }

  template <typename T>
  void use(const T& thing, std::vector<T>& list) {
    if (defined_.count(thing.get()) == 0 && used_.insert(thing.get()).second) list.push_back(thing);
  }

  std::set<const void*> defined_;
  std::set<const void*> used_;
  std::set<const void*> seen_exprs_;
};

}  // namespace

/// Stores what the body captures into a closure on the stack and hands the outlined body to the executor.
void KernelEmitter::emit_parallel(const te::StmtNode& node) {
  TM_CHECK(!frame_.is_task, "a parallel loop inside a parallel loop");
  llvm::Value* begin = emit_root(node.min);
  llvm::Value* extent = emit_root(node.extent);
  Captures captures;
  captures.define(node.var);
  captures.visit(node.body);

  // Parameters keep their noalias only as arguments of the task, so all are passed; other buffers that live
  // outside are passed as plain pointers. The workspaces go through the closure too, although the call has
  // them: tasks must reach them through pointers derived from the body's noalias arguments, or the launch
  // would seem not to write them.
  std::vector<te::Buffer> locals;
  std::vector<te::Buffer> shared;
  for (const te::Buffer& buffer : captures.buffers) {
    if (buffer->scope == te::Scope::kParameter) continue;
    (buffer->scope == te::Scope::kSharedWorkspace ? shared : locals).push_back(buffer);
  }
  std::vector<llvm::Value*> fields = {begin, frame_.shared_workspace, frame_.worker_workspace};
  for (const te::Parameter& parameter : function_.parameters)
    fields.push_back(buffer_pointer(parameter.buffer));
  for (const te::Buffer& buffer : locals) fields.push_back(buffer_pointer(buffer));
  for (const te::Var& var : captures.vars) {
    TM_CHECK(frame_.vars.count(var.get()) != 0, "variable " + var->name + " is not defined");
    fields.push_back(frame_.vars[var.get()]);
  }
  std::vector<llvm::Type*> types;
  for (llvm::Value* field : fields) types.push_back(field->getType());
  llvm::StructType* closure_type = llvm::StructType::get(context_, types);
  llvm::AllocaInst* closure = entry_alloca(closure_type, "closure");
  for (unsigned i = 0; i < fields.size(); ++i) {
    builder_.CreateStore(fields[i], builder_.CreateStructGEP(closure_type, closure, i));
  }

  const llvm::IRBuilderBase::InsertPoint here = builder_.saveIP();
  Frame outer = std::move(frame_);
  llvm::Function* body = emit_task_body(node, captures.vars, locals, shared);
  llvm::Function* task = emit_task_entry(body, closure_type);
  frame_ = std::move(outer);
  memo_.clear();
  builder_.restoreIP(here);

  llvm::BasicBlock* launch = llvm::BasicBlock::Create(context_, "launch", frame_.function);
  llvm::BasicBlock* stop = llvm::BasicBlock::Create(context_, "stop", frame_.function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "after", frame_.function);
  builder_.CreateCondBr(builder_.CreateICmpSGT(extent, builder_.getInt64(0)), launch, after);
  builder_.SetInsertPoint(launch);
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Type* int32 = builder_.getInt32Ty();
  llvm::Value* parallel = load_call_field(frame_.call, offsetof(tm_call, parallel), pointer);
  llvm::Value* callee = load_call_field(parallel, offsetof(tm_parallel, launch), pointer);
  llvm::FunctionType* type =
      llvm::FunctionType::get(int32, {pointer, pointer, pointer, builder_.getInt64Ty()}, false);
  llvm::CallInst* code = builder_.CreateCall(type, callee, {frame_.call, task, closure, extent});
  code->setDoesNotThrow();
  builder_.CreateCondBr(builder_.CreateICmpNE(code, builder_.getInt32(0)), stop, after);
  builder_.SetInsertPoint(stop);
  emit_return(code);
  builder_.SetInsertPoint(after);
}

/// i32 task(call, closure, task, worker): unpacks the closure and calls the body.
llvm::Function* KernelEmitter::emit_task_entry(llvm::Function* body, llvm::StructType* closure_type) {
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Type* int32 = builder_.getInt32Ty();
  llvm::Type* int64 = builder_.getInt64Ty();
  llvm::Function* task =
      llvm::Function::Create(llvm::FunctionType::get(int32, {pointer, pointer, int64, int32}, false),
                             llvm::Function::InternalLinkage, "task", module_);
  begin_frame(task);
  llvm::Value* call = task->getArg(0);
  llvm::Value* closure = task->getArg(1);
  std::vector<llvm::Value*> fields;
  for (unsigned i = 0; i < closure_type->getNumElements(); ++i) {
    llvm::LoadInst* field = builder_.CreateLoad(closure_type->getElementType(i),
                                                builder_.CreateStructGEP(closure_type, closure, i));
    // Nothing writes the closure while tasks run.
    field->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    fields.push_back(field);
  }
  llvm::Value* stride = load_call_field(call, offsetof(tm_call, worker_workspace_stride), int64);
  llvm::Value* offset = builder_.CreateMul(builder_.CreateSExt(task->getArg(3), int64), stride);
  llvm::Value* workspace = builder_.CreateGEP(builder_.getInt8Ty(), fields[2], offset);
  std::vector<llvm::Value*> args = {call, fields[1], workspace,
                                    builder_.CreateAdd(fields[0], task->getArg(2))};
  args.insert(args.end(), fields.begin() + 3, fields.end());
  emit_return(builder_.CreateCall(body, args));
  builder_.SetInsertPoint(frame_.entry);
  builder_.CreateBr(&*std::next(task->begin()));
  return task;
}

/// i32 task_body(call, shared workspace, this worker's workspace, loop variable, parameters..., locals...,
/// vars...)
llvm::Function* KernelEmitter::emit_task_body(const te::StmtNode& node, const std::vector<te::Var>& vars,
                                              const std::vector<te::Buffer>& locals,
                                              const std::vector<te::Buffer>& shared) {
  llvm::Type* pointer = builder_.getPtrTy();
  std::vector<llvm::Type*> types = {pointer, pointer, pointer, builder_.getInt64Ty()};
  types.insert(types.end(), function_.parameters.size() + locals.size(), pointer);
  for (const te::Var& var : vars) types.push_back(value_type({var->dtype, var->lanes}));
  llvm::Function* body = llvm::Function::Create(llvm::FunctionType::get(builder_.getInt32Ty(), types, false),
                                                llvm::Function::InternalLinkage, "task_body", module_);
  const llvm::Attribute align = llvm::Attribute::getWithAlignment(context_, llvm::Align(64));
  begin_frame(body);
  frame_.is_task = true;
  frame_.call = body->getArg(0);
  frame_.shared_workspace = body->getArg(1);
  frame_.worker_workspace = body->getArg(2);
  frame_.vars[node.var.get()] = body->getArg(3);
  // A captured buffer can be a second path into worker 0's workspace: that is then not noalias.
  for (unsigned i = 1; i < 3; ++i) {
    body->addParamAttr(i, align);
    if (i == 1 || locals.empty()) body->addParamAttr(i, llvm::Attribute::NoAlias);
  }
  for (const te::Buffer& buffer : shared) {
    frame_.buffers[buffer.get()] =
        builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), frame_.shared_workspace,
                                            static_cast<uint64_t>(shared_offsets_.at(buffer.get())));
  }
  unsigned arg = 4;
  for (size_t i = 0; i < function_.parameters.size(); ++i, ++arg) {
    frame_.buffers[function_.parameters[i].buffer.get()] = body->getArg(arg);
    body->addParamAttr(arg, align);
    const int alias = i < function_.aliases.size() ? function_.aliases[i] : -1;
    if (alias < 0) body->addParamAttr(arg, llvm::Attribute::NoAlias);
  }
  for (const te::Buffer& buffer : locals) frame_.buffers[buffer.get()] = body->getArg(arg++);
  for (const te::Var& var : vars) frame_.vars[var.get()] = body->getArg(arg++);
  llvm::Value* parallel = load_call_field(frame_.call, offsetof(tm_call, parallel), pointer);
  llvm::Value* workers = load_call_field(parallel, offsetof(tm_parallel, workers), builder_.getInt32Ty());
  frame_.workers = builder_.CreateSExt(workers, builder_.getInt64Ty());
  frame_.loops.push_back(&node);
  emit_stmt(node.body);
  end_frame();
  return body;
}

}  // namespace tensormill::codegen
