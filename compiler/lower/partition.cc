// Loop partition: where guards inside a loop hold for all but the first or the last iterations, the loop (or
// the scope of a let) is written several times: a main part in which the guards are gone, a head and a tail.
#include <algorithm>
#include <optional>

#include "compiler/lower/passes.h"
#include "compiler/lower/range_rewriter.h"

namespace tensormill::lower {

using te::Expr;
using te::ExprOp;
using te::ForKind;
using te::IndexRange;
using te::Linear;
using te::Stmt;
using te::StmtOp;

namespace {

constexpr int kMaxDepth = 3;  // the code grows by 2 or 3 with each level
constexpr size_t kMaxStatements = 400;

// Statements as they will be once loops are unrolled, and those of them under a guard.
struct Size {
  size_t all = 0;
  size_t guarded = 0;
};

Size unrolled_size(const Stmt& stmt) {
  Size size{1, 0};
  const auto add = [&](const Stmt& part) {
    if (!part) return;
    const Size other = unrolled_size(part);
    size.all += other.all;
    size.guarded += other.guarded;
  };
  for (const Stmt& child : stmt->children) add(child);
  add(stmt->body);
  add(stmt->else_body);
  if (stmt->op == StmtOp::kIf) size.guarded = size.all;
  if (stmt->op == StmtOp::kFor && stmt->for_kind == ForKind::kUnrolled) {
    const int64_t* extent = te::as_int(stmt->extent);
    const size_t times = static_cast<size_t>(extent ? std::max<int64_t>(*extent, 1) : 1);
    size.all *= times;
    size.guarded *= times;
  }
  return size;
}

// Whether a body of straight code has so few guards that copies of it would cost more than the guards.
bool guards_are_cheap(const Stmt& body) {
  const Size size = unrolled_size(body);
  return size.guarded * 6 < size.all;
}

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
    const Cuts cuts = find_cuts(stmt->var, {*low, *low + *count - 1}, stmt->body);
    if (cuts.empty()) return RangeRewriter::rewrite_for(stmt);
    ++depth_;
    std::vector<Stmt> parts;
    int64_t begin = *low;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      const int64_t end = i < cuts.size() ? cuts[i] : *low + *count;
      const te::Var var = i == 0 ? stmt->var : te::make_var(stmt->var->name);
      const Stmt body = i == 0 ? stmt->body : te::substitute(stmt->body, stmt->var, Expr(var));
      parts.push_back(rewrite(te::make_for(var, Expr(begin), Expr(end - begin), ForKind::kSerial, body)));
      begin = end;
    }
    --depth_;
    return te::make_seq(std::move(parts));
  }

  Stmt rewrite_let(const Stmt& stmt) override {
    const Expr value = rewrite(stmt->value);
    const std::optional<IndexRange> range = te::range_of(value, ranges_);
    if (!range || range->low == range->high) return RangeRewriter::rewrite_let(stmt);
    ranges_.bind(stmt->var, *range);
    const Cuts cuts = find_cuts(stmt->var, *range, stmt->body);
    if (cuts.empty()) return RangeRewriter::rewrite_let(stmt);
    ++depth_;
    Stmt branch = stmt->body;
    for (size_t i = cuts.size(); i-- > 0;) {
      branch = te::make_if(Expr(stmt->var) < Expr(cuts[i]), stmt->body, branch);
    }
    Stmt result = te::make_let(stmt->var, value, rewrite(branch));
    --depth_;
    return result;
  }

private:
  using Cuts = std::vector<int64_t>;
  struct Ends {
    std::optional<int64_t> head;  // from here on no guard fails that fails for small values
    std::optional<int64_t> tail;  // from here on a guard can fail
  };

  // Where to cut the range of `var`, so that guards of inner loops hold throughout the part in the middle.
  Cuts find_cuts(const te::Var& var, IndexRange range, const Stmt& body) {
    if (depth_ >= kMaxDepth || count_statements(body) > kMaxStatements || guards_are_cheap(body)) return {};
    inner_ = te::BoundsContext();
    inner_.bind(var, range);
    Ends ends;
    search(var, range, body, false, ends);
    Cuts cuts;
    if (ends.head) cuts.push_back(*ends.head);
    if (ends.tail && ends.tail != ends.head) cuts.push_back(*ends.tail);
    std::sort(cuts.begin(), cuts.end());
    return cuts;
  }

  void search(const te::Var& var, IndexRange range, const Stmt& stmt, bool in_loop, Ends& ends) {
    switch (stmt->op) {
      case StmtOp::kFor: {
        const std::optional<IndexRange> low = te::range_of(stmt->min, ranges_);
        const std::optional<IndexRange> count = te::range_of(stmt->extent, ranges_);
        if (low && count && count->high > 0) {
          inner_.bind(stmt->var, {low->low, low->high + count->high - 1});
          ranges_.bind(stmt->var, {low->low, low->high + count->high - 1});
        }
        search(var, range, stmt->body, true, ends);
        return;
      }
      case StmtOp::kIf:
        if (in_loop) consider(var, range, stmt->condition, ends);
        search(var, range, stmt->body, in_loop, ends);
        if (stmt->else_body) search(var, range, stmt->else_body, in_loop, ends);
        return;
      case StmtOp::kSeq:
        for (const Stmt& child : stmt->children) search(var, range, child, in_loop, ends);
        return;
      case StmtOp::kLet:
        if (const std::optional<IndexRange> value = te::range_of(stmt->value, ranges_))
          ranges_.bind(stmt->var, *value);
        search(var, range, stmt->body, in_loop, ends);
        return;
      case StmtOp::kAllocate:
        search(var, range, stmt->body, in_loop, ends);
        return;
      case StmtOp::kStore:
        return;
    }
  }

  // `condition` as "form < 0"; nothing when it is no comparison of indices.
  std::optional<Linear> negative_form(const Expr& condition) const {
    if (condition->args.size() != 2 || condition->type.lanes != 1 ||
        condition->args[0]->type.dtype != DType::kInt64)
      return std::nullopt;
    const bool less = condition->op == ExprOp::kLt || condition->op == ExprOp::kLe;
    const bool strict = condition->op == ExprOp::kLt || condition->op == ExprOp::kGt;
    if (!less && condition->op != ExprOp::kGt && condition->op != ExprOp::kGe) return std::nullopt;
    Linear form;
    form.add(te::to_affine(condition->args[0], ranges_), less ? 1 : -1);
    form.add(te::to_affine(condition->args[1], ranges_), less ? -1 : 1);
    if (!strict) form.constant -= 1;
    return form;
  }

  void consider(const te::Var& var, IndexRange range, const Expr& condition, Ends& ends) {
    std::optional<Linear> rest = negative_form(condition);
    if (!rest) return;
    const int64_t coefficient = rest->coefficient_of(Expr(var));
    if (coefficient == 0) return;
    rest->add(Expr(var), -coefficient);
    // Only variables of the body may move the guard: the cut is one number.
    const std::optional<IndexRange> others = te::range_of(*rest, inner_);
    if (!others) return;
    // coefficient * v + high < 0 for all v below the cut, or from the cut on where the coefficient is
    // negative.
    const int64_t high = others->high, step = coefficient > 0 ? coefficient : -coefficient;
    int64_t cut;
    if (coefficient > 0) {
      cut = high >= 0 ? range.low : (-high + step - 1) / step;
    } else {
      cut = high < 0 ? range.low : high / step + 1;
    }
    if (cut <= range.low || cut > range.high) return;
    if (coefficient > 0 && (!ends.tail || cut < *ends.tail)) ends.tail = cut;
    if (coefficient < 0 && (!ends.head || cut > *ends.head)) ends.head = cut;
  }

  te::BoundsContext inner_;
  int depth_ = 0;
};

}  // namespace

te::Function run_partition(const te::Function& input, const target::Target&) {
  te::Function result = input;
  result.body = Partitioner().rewrite(input.body);
  return result;
}

}  // namespace tensormill::lower
