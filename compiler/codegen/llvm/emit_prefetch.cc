#include "compiler/codegen/llvm/kernel_emitter.h"
#include "compiler/te/linear.h"

namespace tensormill::codegen {
namespace {

/// Buffers of this size are taken to come from beyond L2 when a kernel reads them.
constexpr int64_t kStreamedBytes = 256 * 1024;
/// The present panel and the next have to stay in L2 side by side.
constexpr int64_t kMaxPanelBytes = 640 * 1024;
/// Fetches at once, for each stream.
constexpr int64_t kMaxBurst = 4;
/// Residues are looked up in one word.
constexpr int64_t kMaskBits = 64;
constexpr unsigned kLocality = 2;  ///< into L2

bool is_innermost(const te::Stmt& stmt) {
  if (stmt->op == te::StmtOp::kFor) return false;
  for (const te::Stmt& child : stmt->children) {
    if (!is_innermost(child)) return false;
  }
  return (!stmt->body || is_innermost(stmt->body)) && (!stmt->else_body || is_innermost(stmt->else_body));
}

bool is_streamed(const te::ExprNode& load) {
  const int64_t* extent = te::as_int(load.buffer->shape[0]);
  return load.buffer->scope == te::Scope::kParameter && load.type.lanes > 1 && !load.mask &&
         extent != nullptr &&
         *extent * static_cast<int64_t>(dtype_bytes(load.buffer->dtype)) >= kStreamedBytes &&
         load.args[0]->op == te::ExprOp::kRamp && te::is_int(load.args[0]->args[1], 1);
}

void collect_streams(const te::Expr& expr, std::vector<te::Expr>& streams) {
  if (expr->op == te::ExprOp::kLoad && is_streamed(*expr)) {
    for (const te::Expr& known : streams) {
      if (te::equal(known, expr)) return;
    }
    streams.push_back(expr);
    return;
  }
  for (const te::Expr& arg : expr->args) collect_streams(arg, streams);
}

void collect_streams(const te::Stmt& stmt, std::vector<te::Expr>& streams) {
  if (stmt->value) collect_streams(stmt->value, streams);
  for (const te::Stmt& child : stmt->children) collect_streams(child, streams);
  if (stmt->body) collect_streams(stmt->body, streams);
  if (stmt->else_body) collect_streams(stmt->else_body, streams);
}

/// A panel of weights: which of how often it is read now, and how far away the next one is.
struct Panel {
  te::Expr reading;  ///< 0 <= reading < times; null when nothing is known
  int64_t times = 0;
  int64_t next = 0;      ///< elements from a place to the same place of the next panel
  bool by_task = false;  ///< the next panel is that of the next task
};

/// Panels that are counted by floordiv(x, times): x is an index over panels and readings.
Panel divided_panel(const te::Linear& index) {
  for (const te::Term& term : index.terms) {
    if (term.atom->op != te::ExprOp::kFloorDiv || term.coefficient <= 0) continue;
    const int64_t* times = te::as_int(term.atom->args[1]);
    if (times == nullptr || *times < 2) continue;
    return {te::floormod(term.atom->args[0], term.atom->args[1]), *times, term.coefficient, false};
  }
  return {};
}

/// `loops` are the enclosing ones, the innermost last.
Panel find_panel(const te::Expr& base, const std::vector<const te::StmtNode*>& loops) {
  const te::Linear index = te::to_linear(base);
  if (index.coefficient_of(te::Expr(loops.back()->var)) <= 0) return {};
  Panel panel = divided_panel(index);
  if (panel.reading) return panel;
  for (size_t i = loops.size() - 1; i-- > 0;) {
    const te::StmtNode& loop = *loops[i];
    const int64_t step = index.coefficient_of(te::Expr(loop.var));
    if (step == 0 && te::mentions(base, loop.var)) return {};
    const int64_t* times = te::as_int(loop.extent);
    if (!panel.reading && step == 0 && times != nullptr && *times > 1) {
      panel.reading = te::Expr(loop.var) - loop.min;
      panel.times = *times;
    } else if (panel.reading && step > 0) {
      panel.next = step;
      panel.by_task = loop.for_kind == te::ForKind::kParallel;
      return panel;
    }
  }
  return {};
}

/// Steps of the innermost loop that a reading fetches before it; 0 where they are too many at once.
int64_t burst_steps(const te::StmtNode& loop, const Panel& panel) {
  const int64_t* extent = te::as_int(loop.extent);
  if (extent == nullptr) return 0;
  const int64_t steps = (*extent + panel.times - 1) / panel.times;
  return steps <= kMaxBurst ? steps : 0;
}

}  // namespace

/// Weights that are read several times while they are in the caches, and then no more, arrive at once and are
/// waited for. So the next panel is fetched while the present one is read again, evenly over its T readings,
/// at the pace of the arithmetic: before a short innermost loop a T-th of what that loop reads, inside of a
/// long one the lines of every T-th step. A hint only: no value depends on it.
void KernelEmitter::emit_prefetches(const te::StmtNode& loop, bool before) {
  if (!is_innermost(loop.body)) return;
  std::vector<te::Expr> streams;
  collect_streams(loop.body, streams);
  memo_.clear();
  std::vector<PanelFetch> steps;  // fetched inside of the loop
  for (const te::Expr& stream : streams) {
    const te::Expr& base = stream->args[0]->args[0];
    bool outside = true;  // of names that the body binds
    te::for_each_expr(base, [&](const te::Expr& part) {
      if (part->op == te::ExprOp::kVar && frame_.vars.count(part->var.get()) == 0) outside = false;
    });
    const Panel panel = outside ? find_panel(base, frame_.loops) : Panel{};
    const int64_t element = static_cast<int64_t>(dtype_bytes(stream->buffer->dtype));
    const int64_t bytes = panel.next * element;
    if (!panel.reading || bytes > kMaxPanelBytes) continue;
    const int64_t burst = burst_steps(loop, panel);
    if (before != (burst > 0)) continue;
    kept_.push_back(panel.reading);
    kept_.push_back(base);
    if (!before) {
      steps.push_back({stream, panel.reading, panel.times, bytes});
      continue;
    }
    llvm::Value* reading = emit_expr(panel.reading);
    llvm::Value* here =
        element_pointer(buffer_pointer(stream->buffer), stream->buffer->dtype, emit_expr(base), true);
    const int64_t stride = te::to_linear(base).coefficient_of(te::Expr(loop.var)) * element;
    const int64_t last = *te::as_int(loop.extent) - burst;
    llvm::Value* first =
        intrinsic(llvm::Intrinsic::smin,
                  {builder_.CreateMul(reading, int_like(reading, burst)), int_like(reading, last)});
    llvm::Value* offset = builder_.CreateMul(first, int_like(reading, stride));
    for (int64_t i = 0; i < burst; ++i) {
      llvm::Value* ahead = builder_.CreateAdd(offset, int_like(reading, bytes + i * stride));
      emit_fetch(builder_.CreateGEP(builder_.getInt8Ty(), here, ahead));
    }
  }
  emit_due_fetches(steps, frame_.vars[loop.var.get()]);
  memo_.clear();
}

/// One branch for all streams that are due in the same steps: it is foreseen, and the steps in between spend
/// nothing on what they do not fetch.
void KernelEmitter::emit_due_fetches(const std::vector<PanelFetch>& fetches, llvm::Value* step) {
  for (size_t first = 0; first < fetches.size();) {
    const PanelFetch& fetch = fetches[first];
    llvm::Value* due = emit_due(emit_expr(fetch.reading), fetch.times, step);
    llvm::BasicBlock* ahead = llvm::BasicBlock::Create(context_, "ahead", frame_.function);
    llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "fetched", frame_.function);
    builder_.CreateCondBr(due, ahead, after);
    builder_.SetInsertPoint(ahead);
    memo_.clear();  // what is emitted here does not reach what follows
    size_t next = first;
    for (; next < fetches.size() && fetches[next].times == fetch.times &&
           te::equal(fetches[next].reading, fetch.reading);
         ++next) {
      const te::ExprNode& load = *fetches[next].load;
      llvm::Value* here = element_pointer(buffer_pointer(load.buffer), load.buffer->dtype,
                                          emit_expr(load.args[0]->args[0]), true);
      emit_fetch(builder_.CreateGEP(builder_.getInt8Ty(), here, builder_.getInt64(fetches[next].bytes)));
    }
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    memo_.clear();
    first = next;
  }
}

void KernelEmitter::emit_fetch(llvm::Value* address) {
  builder_.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
      {address, builder_.getInt32(0), builder_.getInt32(kLocality), builder_.getInt32(1)});
}

/// Whether `step` is among those for which reading `number` of `times` fetches.
llvm::Value* KernelEmitter::emit_due(llvm::Value* number, int64_t times, llvm::Value* step) {
  uint64_t pattern = 0;
  for (int64_t bit = 0; bit < kMaskBits; bit += times) pattern |= uint64_t{1} << bit;
  llvm::Value* shift = builder_.CreateAnd(number, builder_.getInt64(kMaskBits - 1));
  llvm::Value* mask = builder_.CreateShl(builder_.getInt64(pattern), shift);
  if (times > kMaskBits) {
    llvm::Value* in_word = builder_.CreateICmpULT(number, builder_.getInt64(kMaskBits));
    mask = builder_.CreateSelect(in_word, mask, builder_.getInt64(0));
  }
  llvm::Value* place = builder_.CreateAnd(step, builder_.getInt64(kMaskBits - 1));
  return builder_.CreateTrunc(builder_.CreateLShr(mask, place), builder_.getInt1Ty());
}

}  // namespace tensormill::codegen
