/// Emits one kernel as LLVM IR. One object per kernel; the methods are in emit_*.cc by what they
/// emit.
///
/// A kernel becomes: the exported prologue (checks the call, loads the arguments), an internal body whose
/// buffer parameters carry `noalias`, and two internal functions for each parallel loop (unpack the closure;
/// the task). Values: bool is i1 in registers and i8 in memory; f16 and bf16 are i16 everywhere and are
/// converted to f32 for arithmetic, as te::evaluate_op does. Thread-safety: an object belongs to one thread,
/// as its LLVMContext does.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/codegen/llvm/target_traits.h"
#include "compiler/te/stmt.h"

namespace tensormill::codegen {

class KernelEmitter {
public:
  KernelEmitter(const te::Function& function, const TargetTraits& traits, llvm::Module& module);
  /// Adds the kernel and its helpers to the module.
  void emit();

private:
  /// What belongs to the LLVM function under construction.
  struct Frame {
    llvm::Function* function = nullptr;
    llvm::BasicBlock* entry = nullptr;  ///< allocas only; branches to the first block in the end
    llvm::Value* call = nullptr;
    llvm::Value* shared_workspace = nullptr;
    llvm::Value* worker_workspace = nullptr;
    bool is_task = false;
    llvm::AllocaInst* failed = nullptr;     ///< i1: an index was out of range; null when no index is checked
    llvm::AllocaInst* bad_index = nullptr;  ///< i64: the first such index
    std::unordered_map<const te::VarNode*, llvm::Value*> vars;
    std::unordered_map<const te::BufferNode*, llvm::Value*> buffers;
    std::vector<const te::StmtNode*> loops;  ///< around what is emitted, outermost first; a task's own first
    llvm::Value* workers = nullptr;  ///< i64, of the task: its worker's next task is about so many later
  };
  /// base + stride * lane, with a constant stride.
  struct AffineIndex {
    te::Expr base;
    int64_t stride = 0;
  };

  // emit_call.cc: the ABI
  void emit_prologue(llvm::Function* body);
  llvm::Function* declare_body();
  void begin_frame(llvm::Function* function);
  void end_frame();
  void emit_return(llvm::Value* code);
  llvm::Value* load_call_field(llvm::Value* call, unsigned field, llvm::Type* type);

  // emit_control.cc
  void emit_stmt(const te::Stmt& stmt);
  void emit_for(const te::StmtNode& node);
  void emit_if(const te::StmtNode& node);
  void emit_allocate(const te::StmtNode& node);
  void emit_let(const te::StmtNode& node);

  // emit_prefetch.cc
  /// Bytes ahead of a load: the same place of the next panel, fetched in every `times`-th step from step
  /// `reading` on.
  struct PanelFetch {
    te::Expr load, reading;
    int64_t times = 0, bytes = 0;
  };
  void emit_prefetches(const te::StmtNode& loop, bool before);
  void emit_due_fetches(const std::vector<PanelFetch>& fetches, llvm::Value* step);
  void emit_skipped_prefetches(const te::Stmt& guarded);
  llvm::Value* emit_due(llvm::Value* number, int64_t times, llvm::Value* step);
  void emit_fetch(llvm::Value* address);

  // emit_parallel.cc
  void emit_parallel(const te::StmtNode& node);
  llvm::Function* emit_task_entry(llvm::Function* task, llvm::StructType* closure_type);
  llvm::Function* emit_task_body(const te::StmtNode& node, const std::vector<te::Var>& vars,
                                 const std::vector<te::Buffer>& locals,
                                 const std::vector<te::Buffer>& shared);

  // emit_memory.cc
  void emit_store(const te::StmtNode& node);
  llvm::Value* emit_load(const te::ExprNode& node);
  llvm::Value* load_lanes(const te::ExprNode& node, llvm::Value* pointer, llvm::Value* mask);
  llvm::Value* load_every_other(const te::ExprNode& node, llvm::Value* base, const AffineIndex& index,
                                llvm::Value* mask);
  llvm::Value* load_ramp(const te::ExprNode& node, llvm::Value* pointer, const AffineIndex& index,
                         llvm::Value* mask);
  void store_ramp(const te::StmtNode& node, llvm::Value* pointer, const AffineIndex& index,
                  llvm::Value* value, llvm::Value* mask);
  void store_lanes(const te::StmtNode& node, llvm::Value* pointer, llvm::Value* value, llvm::Value* mask);
  bool as_affine(const te::Expr& index, AffineIndex& result);
  llvm::Value* buffer_pointer(const te::Buffer& buffer);
  llvm::Value* element_pointer(llvm::Value* base, DType dtype, llvm::Value* index, bool in_bounds);
  llvm::Align alignment_of(const te::Buffer& buffer, const te::Expr& index) const;
  llvm::Value* to_memory(DType dtype, llvm::Value* value);
  llvm::Value* from_memory(DType dtype, llvm::Value* value);
  llvm::Type* memory_type(DType dtype, int lanes);

  // emit_expr.cc
  /// A root expression: sub-expressions that are shared within it are emitted once.
  llvm::Value* emit_root(const te::Expr& expr);
  llvm::Value* emit_expr(const te::Expr& expr);
  llvm::Value* emit_new(const te::Expr& expr);
  llvm::Value* emit_constant(const te::ExprNode& node);
  llvm::Value* emit_ramp(const te::ExprNode& node);
  llvm::Value* emit_lane_reduce(const te::ExprNode& node);
  llvm::Value* emit_lane_limit(const te::ExprNode& node);
  llvm::Value* emit_check_index(const te::ExprNode& node);
  llvm::Value* emit_arithmetic(te::ExprOp op, DType dtype, const std::vector<llvm::Value*>& args);
  llvm::Type* value_type(te::Type type);

  // emit_dot4.cc
  llvm::Value* emit_dot4_sum(const te::ExprNode& node);
  llvm::Value* emit_dot4(llvm::Value* a, llvm::Value* b, llvm::Value* sum);

  // emit_lookup.cc
  llvm::Value* emit_lookup(const te::ByteTable& table, llvm::Value* index);
  llvm::Value* lookup_64_lanes(const te::ByteTable& table, llvm::Value* index);
  llvm::Value* lookup_16_lanes(const te::ByteTable& table, llvm::Value* index);
  llvm::Value* lookup_in_memory(const te::ByteTable& table, llvm::Value* index);
  llvm::Constant* stored_table(const te::ByteTable& table);
  llvm::Constant* part_of_table(const te::ByteTable& table, size_t first, size_t count);

  // emit_scaling.cc
  llvm::Value* emit_scaling(te::ExprOp op, const std::vector<llvm::Value*>& args);
  llvm::Value* emit_scaling_form(te::ExprOp op, const std::vector<llvm::Value*>& args);

  // emit_integer.cc
  llvm::Value* emit_integer(te::ExprOp op, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_division(te::ExprOp op, bool is_signed, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_shift(te::ExprOp op, bool is_signed, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_integer_compare(te::ExprOp op, bool is_signed, llvm::Value* a, llvm::Value* b);

  // emit_float.cc
  llvm::Value* emit_float(te::ExprOp op, DType dtype, const std::vector<llvm::Value*>& args);
  llvm::Value* emit_min_max(bool is_max, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_range(bool is_max, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_narrow_min_max(bool is_max, DType dtype, const std::vector<llvm::Value*>& args,
                                   const std::vector<llvm::Value*>& wide);
  llvm::Value* emit_rounding(te::ExprOp op, llvm::Value* a);
  llvm::Value* emit_fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* emit_fmod(llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_fmod_scalar(llvm::Value* a, llvm::Value* b);
  llvm::Function* fmod_steps();
  llvm::Value* emit_narrow_float(te::ExprOp op, DType dtype, const std::vector<llvm::Value*>& args);

  // emit_cast.cc
  llvm::Value* emit_cast(DType from, DType to, llvm::Value* value);
  llvm::Value* emit_reinterpret(DType from, DType to, llvm::Value* value);
  llvm::Value* float_to_integer(DType to, llvm::Value* value);
  llvm::Value* float_to_short(DType to, llvm::Value* value);
  llvm::Value* widen_float(DType from, llvm::Value* value);  ///< f16 or bf16 to f32
  llvm::Value* narrow_float(DType to, llvm::Value* value);   ///< f32 to f16 or bf16
  llvm::Value* half_to_float_bits(llvm::Value* value);
  llvm::Value* float_to_half_bits(llvm::Value* value);

  // ---- small helpers
  llvm::Type* element_type(DType dtype);
  /// `scalar` as the type of `like`: itself, or a vector of that many lanes.
  llvm::Type* like(llvm::Type* scalar, llvm::Value* shape);
  llvm::Constant* int_like(llvm::Value* shape, int64_t value);   ///< splat of the integer type of `shape`
  llvm::Constant* float_like(llvm::Value* shape, double value);  ///< splat of the float type of `shape`
  llvm::Value* intrinsic(llvm::Intrinsic::ID id, std::initializer_list<llvm::Value*> args);
  using Emit = std::function<llvm::Value*(const std::vector<llvm::Value*>&)>;
  /// What `emit` makes of so many lanes of the args at a time, side by side. The last have undefined lanes
  /// past the end.
  llvm::Value* by_parts(const std::vector<llvm::Value*>& args, unsigned part, const Emit& emit);
  llvm::AllocaInst* entry_alloca(llvm::Type* type, const char* name);

  const te::Function& function_;
  const TargetTraits& traits_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> builder_;
  Frame frame_;
  std::unordered_map<const te::BufferNode*, int64_t> shared_offsets_;  ///< of shared workspace buffers
  std::unordered_map<const te::ExprNode*, llvm::Value*> memo_;
  std::unordered_set<const te::StmtNode*>
      fetched_;                 ///< loops whose fetches stand before a condition around them
  std::vector<te::Expr> kept_;  ///< index expressions made here, so that memo_'s keys stay alive
};

}  // namespace tensormill::codegen
