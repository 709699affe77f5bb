// Loop partition: where a guard inside a loop holds for all but the last iterations, the loop (or the scope
// of a let) is written twice: a main part in which the guard is gone, and a tail.
#include <algorithm>
#include <optional>

#include "compiler/lower/passes.h"
#include "compiler/lower/range_rewriter.h"

namespace tensormill::lower {

using schedule::Affine;
using schedule::Range;
using te::Expr;
using te::ExprOp;
using te::ForKind;
using te::Stmt;
using te::StmtOp;

namespace {

constexpr int kMaxDepth = 3;  // the code grows by 2 with each level
constexpr size_t kMaxStatements = 400;

size_t count_statements(const Stmt& stmt) {
  size_t count = 1;
  for (const Stmt& child : stmt->children) count += count_statements(child);
  if (stmt->body) count += count_statements(stmt->body);
  if (stmt->else_body) count += count_statements(stmt->else_body);
  return count;
}

class Partitioner : public RangeRewriter {
protected:
  Stmt rewrite_for(const Stmt& stmt) override {
    const Expr min = rewrite(stmt->min), extent = rewrite(stmt->extent);
    const int64_t* low = te::as_int(min);
    const int64_t* count = te::as_int(extent);
    if (stmt->for_kind != ForKind::kSerial || !low || !count || *count < 2)
      return RangeRewriter::rewrite_for(stmt);
    bind_loop(stmt->var, min, extent);
    const std::optional<int64_t> cut = find_cut(stmt->var, {*low, *low + *count - 1}, stmt->body);
    if (!cut) return RangeRewriter::rewrite_for(stmt);
    ++depth_;
    std::vector<Stmt> parts;
    parts.push_back(RangeRewriter::rewrite_for(
        te::make_for(stmt->var, min, Expr(*cut - *low), ForKind::kSerial, stmt->body)));
    const te::Var tail = te::make_var(stmt->var->name);
    const Stmt body = te::substitute(stmt->body, stmt->var, Expr(tail));
    parts.push_back(
        rewrite(te::make_for(tail, Expr(*cut), Expr(*low + *count - *cut), ForKind::kSerial, body)));
    --depth_;
    return te::make_seq(std::move(parts));
  }

  Stmt rewrite_let(const Stmt& stmt) override {
    const Expr value = rewrite(stmt->value);
    const std::optional<Range> range = schedule::range_of(value, ranges_);
    if (!range || range->low == range->high) return RangeRewriter::rewrite_let(stmt);
    ranges_.bind(stmt->var, *range);
    const std::optional<int64_t> cut = find_cut(stmt->var, *range, stmt->body);
    if (!cut) return RangeRewriter::rewrite_let(stmt);
    ++depth_;
    const Stmt branch = te::make_if(Expr(stmt->var) < Expr(*cut), stmt->body, stmt->body);
    Stmt result = te::make_let(stmt->var, value, rewrite(branch));
    --depth_;
    return result;
  }

private:
  // The first value of `var` from which some guard in an inner loop can fail.
  std::optional<int64_t> find_cut(const te::Var& var, Range range, const Stmt& body) {
    if (depth_ >= kMaxDepth || count_statements(body) > kMaxStatements) return std::nullopt;
    inner_ = schedule::Ranges();
    inner_.bind(var, range);
    std::optional<int64_t> best;
    search(var, range, body, false, best);
    return best;
  }

  void search(const te::Var& var, Range range, const Stmt& stmt, bool in_loop, std::optional<int64_t>& best) {
    switch (stmt->op) {
      case StmtOp::kFor: {
        const std::optional<Range> low = schedule::range_of(stmt->min, ranges_);
        const std::optional<Range> count = schedule::range_of(stmt->extent, ranges_);
        if (low && count && count->high > 0) {
          inner_.bind(stmt->var, {low->low, low->high + count->high - 1});
          ranges_.bind(stmt->var, {low->low, low->high + count->high - 1});
        }
        search(var, range, stmt->body, true, best);
        return;
      }
      case StmtOp::kIf:
        if (in_loop) consider(var, range, stmt->condition, best);
        search(var, range, stmt->body, in_loop, best);
        if (stmt->else_body) search(var, range, stmt->else_body, in_loop, best);
        return;
      case StmtOp::kSeq:
        for (const Stmt& child : stmt->children) search(var, range, child, in_loop, best);
        return;
      case StmtOp::kLet:
        if (const std::optional<Range> value = schedule::range_of(stmt->value, ranges_))
          ranges_.bind(stmt->var, *value);
        search(var, range, stmt->body, in_loop, best);
        return;
      case StmtOp::kAllocate:
        search(var, range, stmt->body, in_loop, best);
        return;
      case StmtOp::kStore:
        return;
    }
  }

  void consider(const te::Var& var, Range range, const Expr& condition, std::optional<int64_t>& best) {
    if (condition->op != ExprOp::kLt || condition->type.lanes != 1 ||
        condition->args[0]->type.dtype != DType::kInt64)
      return;
    Affine rest = schedule::to_affine(condition->args[0], ranges_);
    rest.add(schedule::to_affine(condition->args[1], ranges_), -1);
    const int64_t coefficient = rest.coefficient(var);
    if (coefficient <= 0) return;
    rest.add(Expr(var), -coefficient);
    // Only variables of the body may move the guard: the cut is one number.
    const std::optional<Range> others = schedule::range_of(rest, inner_);
    if (!others) return;
    // coefficient * v + high < 0 for all v below the cut.
    const int64_t needed = -others->high;
    const int64_t cut = needed <= 0 ? range.low : (needed + coefficient - 1) / coefficient;
    if (cut <= range.low || cut > range.high) return;
    if (!best || cut < *best) best = cut;
  }

  schedule::Ranges inner_;
  int depth_ = 0;
};

}  // namespace

te::Function run_partition(const te::Function& input, const target::Target&) {
  te::Function result = input;
  result.body = Partitioner().rewrite(input.body);
  return result;
}

}  // namespace tensormill::lower
