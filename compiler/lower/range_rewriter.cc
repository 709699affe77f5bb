#include "compiler/lower/range_rewriter.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::lower {

using te::Expr;
using te::ExprOp;
using te::Stmt;
using te::StmtOp;

Stmt nothing() { return te::make_seq({}); }
bool is_nothing(const Stmt& stmt) { return stmt->op == StmtOp::kSeq && stmt->children.empty(); }

int64_t constant_or(const Expr& expr, int64_t otherwise) {
  const int64_t* value = te::as_int(expr);
  return value ? *value : otherwise;
}

Stmt RangeRewriter::rewrite(const Stmt& stmt) {
  switch (stmt->op) {
    case StmtOp::kFor:
      return rewrite_for(stmt);
    case StmtOp::kStore:
      return rewrite_store(stmt);
    case StmtOp::kAllocate:
      return rewrite_allocate(stmt);
    case StmtOp::kIf:
      return rewrite_if(stmt);
    case StmtOp::kLet:
      return rewrite_let(stmt);
    case StmtOp::kSeq: {
      std::vector<Stmt> children;
      for (const Stmt& child : stmt->children) {
        Stmt result = rewrite(child);
        if (!is_nothing(result)) children.push_back(std::move(result));
      }
      return te::make_seq(std::move(children));
    }
  }
  return stmt;
}

void RangeRewriter::bind_loop(const te::Var& var, const Expr& min, const Expr& extent) {
  const std::optional<te::IndexRange> low = te::range_of(min, ranges_);
  const std::optional<te::IndexRange> count = te::range_of(extent, ranges_);
  ranges_.unbind(var);
  if (low && count && count->high > 0) ranges_.bind(var, {low->low, low->high + count->high - 1});
}

Stmt RangeRewriter::rewrite_for(const Stmt& stmt) {
  const Expr min = rewrite(stmt->min), extent = rewrite(stmt->extent);
  if (te::is_int(extent, 0)) return nothing();
  bind_loop(stmt->var, min, extent);
  if (te::is_int(extent, 1) && te::as_int(min)) return rewrite(stmt->body);
  Stmt body = rewrite(stmt->body);
  if (is_nothing(body)) return body;
  return te::make_for(stmt->var, min, extent, stmt->for_kind, std::move(body));
}

Stmt RangeRewriter::rewrite_store(const Stmt& stmt) {
  Expr mask = stmt->mask ? rewrite(stmt->mask) : Expr();
  if (mask && mask->op == ExprOp::kIntImm) {
    if (mask->int_value == 0) return nothing();
    mask = Expr();
  }
  std::vector<Expr> indices;
  for (const Expr& index : stmt->indices) indices.push_back(rewrite(index));
  return te::make_store(stmt->buffer, std::move(indices), rewrite(stmt->value), std::move(mask));
}

Stmt RangeRewriter::rewrite_allocate(const Stmt& stmt) {
  Stmt body = rewrite(stmt->body);
  return is_nothing(body) ? body : te::make_allocate(stmt->buffer, std::move(body), stmt->offset);
}

Stmt RangeRewriter::rewrite_under(const Expr& condition, bool holds, const Stmt& stmt) {
  if (condition->op != ExprOp::kLt || condition->args[0]->op != ExprOp::kVar) return rewrite(stmt);
  const int64_t* bound = te::as_int(condition->args[1]);
  const te::Var var = condition->args[0]->var;
  const te::Interval* known = ranges_.find(var);
  if (!bound || known == nullptr || !known->low || !known->high) return rewrite(stmt);
  const te::IndexRange before = {*known->low, *known->high};
  te::IndexRange after = before;
  if (holds) {
    after.high = std::min(after.high, *bound - 1);
  } else {
    after.low = std::max(after.low, *bound);
  }
  if (after.low > after.high) return nothing();
  ranges_.bind(var, after);
  Stmt result = rewrite(stmt);
  ranges_.bind(var, before);
  return result;
}

Stmt RangeRewriter::rewrite_if(const Stmt& stmt) {
  const Expr condition = rewrite(stmt->condition);
  if (condition->op == ExprOp::kIntImm) {
    if (condition->int_value != 0) return rewrite(stmt->body);
    return stmt->else_body ? rewrite(stmt->else_body) : nothing();
  }
  Stmt body = rewrite_under(condition, true, stmt->body);
  Stmt other = stmt->else_body ? rewrite_under(condition, false, stmt->else_body) : Stmt();
  if (other && is_nothing(other)) other = Stmt();
  if (is_nothing(body)) return other ? te::make_if(te::logical_not(condition), other) : body;
  return te::make_if(condition, std::move(body), std::move(other));
}

Stmt RangeRewriter::rewrite_let(const Stmt& stmt) {
  const Expr value = rewrite(stmt->value);
  ranges_.unbind(stmt->var);
  if (const std::optional<te::IndexRange> range = te::range_of(value, ranges_)) {
    ranges_.bind(stmt->var, *range);
    if (range->low == range->high) return rewrite(stmt->body);
  }
  Stmt body = rewrite(stmt->body);
  return is_nothing(body) ? body : te::make_let(stmt->var, value, std::move(body));
}

}  // namespace tensormill::lower
