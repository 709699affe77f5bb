#include "compiler/codegen/llvm/kernel_emitter.h"
#include "compiler/te/linear.h"

namespace tensormill::codegen {
namespace {

/// Buffers of this size are taken to come from beyond L2 when a kernel reads them.
constexpr int64_t kStreamedBytes = 256 * 1024;
/// The present panel and the next have to stay in L2 side by side.
constexpr int64_t kMaxPanelBytes = 640 * 1024;
/// Fetches at once, and how far each gets to the next one of its own.
constexpr int64_t kMaxBurst = 16;
constexpr int64_t kLineBytes = 64;
/// Of a loop whose extent is not known so many readings fetch the next panel: what a shorter one leaves out
/// is waited for, which takes longer than that a longer one asks again for what is there.
constexpr int64_t kUnknownTimes = 4;
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
  int64_t next = 0;  ///< elements from a place to the same place of the next panel
  te::Linear place;  ///< elements from the panel's start to what is read
};

/// Panels that are counted by floordiv(x, times): x is an index over panels and readings.
Panel divided_panel(const te::Linear& index) {
  for (const te::Term& term : index.terms) {
    if (term.atom->op != te::ExprOp::kFloorDiv || term.coefficient <= 0) continue;
    const int64_t* times = te::as_int(term.atom->args[1]);
    if (times == nullptr || *times < 2) continue;
    Panel panel = {te::floormod(term.atom->args[0], term.atom->args[1]), *times, term.coefficient, index};
    panel.place.add(term.atom, -term.coefficient);
    return panel;
  }
  return {};
}

/// By how much an index grows with a loop: with its variable, or, up to its last value, with what is left of
/// that by a number.
int64_t step_along(const te::Linear& index, const te::Var& var) {
  if (const int64_t step = index.coefficient_of(te::Expr(var)); step != 0) return step;
  for (const te::Term& term : index.terms) {
    if (term.atom->op == te::ExprOp::kFloorMod && te::equal(term.atom->args[0], te::Expr(var)) &&
        te::as_int(term.atom->args[1]) != nullptr)
      return term.coefficient;
  }
  return 0;
}

/// `loops` are the enclosing ones, the innermost last.
Panel find_panel(const te::Expr& base, const std::vector<const te::StmtNode*>& loops) {
  const te::Linear index = te::to_linear(base);
  if (index.coefficient_of(te::Expr(loops.back()->var)) <= 0) return {};
  Panel panel = divided_panel(index);
  if (panel.reading) return panel;
  panel.place.add(te::Expr(loops.back()->var), index.coefficient_of(te::Expr(loops.back()->var)));
  panel.place.constant = index.constant;
  for (size_t i = loops.size() - 1; i-- > 0;) {
    const te::StmtNode& loop = *loops[i];
    const int64_t step = step_along(index, loop.var);
    if (step == 0 && te::mentions(base, loop.var)) return {};
    if (!panel.reading && step != 0) panel.place.add(te::Expr(loop.var), step);
    const int64_t* times = te::as_int(loop.extent);
    if (!panel.reading && step == 0 && (times == nullptr || *times > 1)) {
      panel.reading = te::Expr(loop.var) - loop.min;
      panel.times = times == nullptr ? kUnknownTimes : *times;
      if (times == nullptr) panel.reading = te::floormod(panel.reading, te::Expr(kUnknownTimes));
    } else if (panel.reading && step > 0) {
      panel.next = step;
      return panel;
    }
  }
  return {};
}

/// What an innermost loop reads of a panel: streams side by side, each with a span of its own.
struct PanelReads {
  te::Buffer buffer;
  Panel panel;          ///< of the first stream
  te::Linear origin;    ///< element at which the first stream begins in the panel of now
  te::Linear place;     ///< elements from there to what the loop reads first
  int64_t span = 0;     ///< elements of a stream in a panel
  int64_t streams = 1;  ///< their number
  int64_t step = 0;     ///< elements that a step of the loop moves on by, in each stream
  std::vector<te::Expr> loads;
};

/// The elements of a stream that all loops together read; 0 when they are not known.
int64_t span_of(const te::Linear& place, const std::vector<const te::StmtNode*>& loops) {
  int64_t span = 0;
  for (const te::Term& term : place.terms) {
    const int64_t* extent = nullptr;
    for (const te::StmtNode* loop : loops) {
      if (te::equal(te::Expr(loop->var), term.atom)) extent = te::as_int(loop->extent);
    }
    if (extent == nullptr || term.coefficient <= 0) return 0;
    span = std::max(span, *extent * term.coefficient);
  }
  return span;
}

/// Joins `stream` to reads that it lies in or beside.
void add_reads(std::vector<PanelReads>& all, PanelReads stream) {
  for (PanelReads& reads : all) {
    if (reads.buffer != stream.buffer || reads.span == 0 || reads.span != stream.span ||
        reads.step != stream.step)
      continue;
    te::Linear distance = stream.origin;
    distance.add(reads.origin, -1);
    if (!distance.is_constant() || distance.constant % reads.span != 0) continue;
    const int64_t at = distance.constant / reads.span;
    if (at < 0 || at > reads.streams) continue;
    reads.streams = std::max(reads.streams, at + 1);
    reads.loads.push_back(stream.loads[0]);
    return;
  }
  all.push_back(std::move(stream));
}

/// Lines that each reading of the panel fetches before the loop; 0 where they are unknown or too many at
/// once.
int64_t burst_lines(const te::StmtNode& loop, const PanelReads& reads) {
  const int64_t* extent = te::as_int(loop.extent);
  if (extent == nullptr || reads.span == 0 || reads.streams * reads.span > reads.panel.next) return 0;
  const int64_t bytes =
      *extent * reads.step * reads.streams * static_cast<int64_t>(dtype_bytes(reads.buffer->dtype));
  const int64_t pace = kLineBytes * reads.panel.times;
  const int64_t lines = (bytes + pace - 1) / pace;
  return lines <= kMaxBurst ? lines : 0;
}

/// What `loop`, the innermost of `loops`, reads of panels that stay in L2 beside the next. Bases with names
/// that `known` does not hold are left out.
std::vector<PanelReads> panel_reads(const te::StmtNode& loop, const std::vector<const te::StmtNode*>& loops,
                                    const std::unordered_map<const te::VarNode*, llvm::Value*>& known) {
  std::vector<te::Expr> loads;
  collect_streams(loop.body, loads);
  std::vector<PanelReads> all;
  for (const te::Expr& load : loads) {
    const te::Expr& base = load->args[0]->args[0];
    bool outside = true;
    te::for_each_expr(base, [&](const te::Expr& part) {
      if (part->op == te::ExprOp::kVar && known.count(part->var.get()) == 0) outside = false;
    });
    const Panel panel = outside ? find_panel(base, loops) : Panel{};
    if (!panel.reading ||
        panel.next * static_cast<int64_t>(dtype_bytes(load->buffer->dtype)) > kMaxPanelBytes)
      continue;
    PanelReads reads;
    reads.buffer = load->buffer;
    reads.panel = panel;
    reads.place = panel.place;
    reads.span = span_of(panel.place, loops);
    if (panel.place.constant < 0) reads.span = 0;
    if (reads.span > 0) reads.place.constant %= reads.span;
    reads.origin = te::to_linear(base);
    reads.origin.add(reads.place, -1);
    reads.step = panel.place.coefficient_of(te::Expr(loop.var));
    reads.loads.push_back(load);
    add_reads(all, std::move(reads));
  }
  return all;
}

}  // namespace

/// Weights that are read several times while they are in the caches, and then no more, arrive at once and are
/// waited for. So the next panel is fetched while the present one is read again, evenly over its T readings,
/// at the pace of the arithmetic: before a short innermost loop a T-th of what that loop reads, inside of a
/// long one the lines of every T-th step. A hint only: no value depends on it.
void KernelEmitter::emit_prefetches(const te::StmtNode& loop, bool before) {
  if (!is_innermost(loop.body) || (before && fetched_.count(&loop) != 0)) return;
  memo_.clear();
  std::vector<PanelFetch> steps;  // fetched inside of the loop
  for (const PanelReads& reads : panel_reads(loop, frame_.loops, frame_.vars)) {
    const int64_t lines = burst_lines(loop, reads);
    if (before != (lines > 0)) continue;
    const int64_t element = static_cast<int64_t>(dtype_bytes(reads.buffer->dtype));
    const int64_t next = reads.panel.next * element, times = reads.panel.times;
    if (!before) {
      kept_.push_back(reads.panel.reading);
      for (const te::Expr& load : reads.loads) {
        kept_.push_back(load->args[0]->args[0]);
        steps.push_back({load, reads.panel.reading, times, next});
      }
      continue;
    }
    const auto emit = [&](const te::Expr& expr) { return emit_expr(kept_.emplace_back(expr)); };
    llvm::Value* reading = emit(reads.panel.reading);
    llvm::Value* origin = element_pointer(buffer_pointer(reads.buffer), reads.buffer->dtype,
                                          emit(te::from_linear(reads.origin)), true);
    // The part of the panel that this reading fetches is itself cut into equal parts, of which each burst
    // takes a line: several sequences that are far apart arrive faster than one.
    const int64_t bytes = reads.span * reads.streams * element;
    llvm::Value* first =
        builder_.CreateUDiv(builder_.CreateMul(reading, int_like(reading, bytes)), int_like(reading, times));
    llvm::Value* place = builder_.CreateUDiv(
        builder_.CreateMul(emit(te::from_linear(reads.place)), int_like(reading, reads.streams * element)),
        int_like(reading, times * lines));
    llvm::Value* here = builder_.CreateGEP(builder_.getInt8Ty(), origin, builder_.CreateAdd(first, place));
    for (int64_t i = 0; i < lines; ++i) {
      emit_fetch(builder_.CreateGEP(builder_.getInt8Ty(), here,
                                    int_like(reading, next + i * bytes / (times * lines))));
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

/// Loops that a condition leaves out are part of the panel all the same, which the other readings rely on.
void KernelEmitter::emit_skipped_prefetches(const te::Stmt& guarded) {
  if (guarded->op == te::StmtOp::kSeq) {
    for (const te::Stmt& child : guarded->children) emit_skipped_prefetches(child);
  }
  if (guarded->op != te::StmtOp::kFor || guarded->for_kind != te::ForKind::kSerial) return;
  if (!is_innermost(guarded->body)) return;
  frame_.vars[guarded->var.get()] = emit_root(guarded->min);
  frame_.loops.push_back(guarded.get());
  emit_prefetches(*guarded, true);
  frame_.loops.pop_back();
  fetched_.insert(guarded.get());
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
