// A vectorized loop becomes its body with the variable's lanes side by side: affine indices become ramps,
// guards become masks, lets of lane values become vector lets.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "compiler/lower/passes.h"
#include "compiler/lower/range_rewriter.h"
#include "runtime/base/error.h"

namespace tensormill::lower {

using te::Expr;
using te::ExprOp;
using te::ForKind;
using te::Linear;
using te::mentions;
using te::Stmt;
using te::StmtOp;

namespace {

// The body of one vectorized loop.
class LaneRewriter {
public:
  LaneRewriter(const te::Var& var, int lanes, te::BoundsContext& ranges,
               const std::set<const te::BufferNode*>& crossed)
      : var_(var), lanes_(lanes), ranges_(ranges), crossed_(crossed) {
    ranges_.bind(var, {0, lanes - 1});
  }

  Stmt run(const Stmt& stmt, const Expr& mask) {
    switch (stmt->op) {
      case StmtOp::kSeq: {
        std::vector<Stmt> children;
        for (const Stmt& child : stmt->children) children.push_back(run(child, mask));
        return te::make_seq(std::move(children));
      }
      case StmtOp::kStore:
        return store(stmt, mask);
      case StmtOp::kIf:
        return branch(stmt, mask);
      case StmtOp::kLet:
        return let(stmt, mask);
      case StmtOp::kFor: {
        TM_CHECK(!varies(stmt->min) && !varies(stmt->extent),
                 "a loop inside a vectorized loop has lanes of its own");
        return te::make_for(stmt->var, stmt->min, stmt->extent, stmt->for_kind, run(stmt->body, mask));
      }
      case StmtOp::kAllocate:
        TM_CHECK(false, "a buffer is allocated inside a vectorized loop");
    }
    return stmt;
  }

private:
  bool varies(const Expr& expr) const {
    if (expr->op == ExprOp::kVar) return expr->var == var_ || lets_.count(expr->var.get()) != 0;
    for (const Expr& arg : expr->args) {
      if (varies(arg)) return true;
    }
    return expr->mask && varies(expr->mask);
  }

  Stmt store(const Stmt& stmt, const Expr& mask) {
    const Expr own_mask = stmt->mask ? widen(stmt->mask, {}) : Expr();
    const Expr lane_mask = own_mask ? combine(mask, own_mask) : mask;
    const bool varying = varies(stmt->indices[0]);
    TM_CHECK(varying || !varies(stmt->value), "a vectorized loop stores all lanes to one element");
    if (!varying) {
      Stmt result = te::make_store(stmt->buffer, stmt->indices, stmt->value, stmt->mask);
      return first_ ? te::make_if(first_, result) : result;
    }
    const Expr index = lanes_of(stmt->indices[0], {});
    // A register has whole vectors: what its tail lanes hold does not matter, and no mask is the faster form.
    // A store that has a mask of its own says which lanes matter.
    const bool free = whole_register(stmt->buffer, index);
    Expr value = widen(stmt->value, lane_mask);
    Stmt result = te::make_store(stmt->buffer, {index}, value, free ? own_mask : lane_mask);
    if (first_ && scalar_load_follows_guard(stmt->value)) result = te::make_if(first_, result);
    return result;
  }

  bool whole_register(const te::Buffer& buffer, const Expr& index) const {
    if (crossed_.count(buffer.get())) return false;
    if (buffer->scope != te::Scope::kRegister || index->op != ExprOp::kRamp || !te::is_int(index->args[1], 1))
      return false;
    const std::optional<te::IndexRange> base = te::range_of(index->args[0], ranges_);
    return base && base->low >= 0 && base->high + lanes_ <= constant_or(buffer->shape[0], 0);
  }

  // A load that is the same for all lanes may be out of bounds where no lane is on.
  bool scalar_load_follows_guard(const Expr& expr) const {
    if (expr->op == ExprOp::kLoad && !varies(expr->args[0])) {
      bool shared = false;
      te::for_each_expr(first_, [&](const Expr& part) {
        if (part->op == ExprOp::kVar && mentions(expr->args[0], part->var)) shared = true;
      });
      if (shared) return true;
    }
    for (const Expr& arg : expr->args) {
      if (scalar_load_follows_guard(arg)) return true;
    }
    return false;
  }

  Stmt branch(const Stmt& stmt, const Expr& mask) {
    if (!varies(stmt->condition)) {
      Stmt other = stmt->else_body ? run(stmt->else_body, mask) : Stmt();
      return te::make_if(stmt->condition, run(stmt->body, mask), other);
    }
    const Expr lanes = widen(stmt->condition, mask);
    std::vector<Stmt> parts;
    const Expr before = first_;
    const Expr first = te::substitute(stmt->condition, var_, first_on(stmt->condition));
    first_ = before ? te::logical_and(before, first) : first;
    parts.push_back(run(stmt->body, combine(mask, lanes)));
    first_ = before;
    if (stmt->else_body) parts.push_back(run(stmt->else_body, combine(mask, te::logical_not(lanes))));
    return te::make_seq(std::move(parts));
  }

  // The lane that is on whenever any is: guards are `affine < bound`, so it is one of the ends.
  Expr first_on(const Expr& condition) const {
    TM_CHECK(condition->args.size() == 2 && condition->args[0]->type.dtype == DType::kInt64,
             "a lane guard that is no comparison");
    Linear difference = te::to_affine(condition->args[0], ranges_);
    difference.add(te::to_affine(condition->args[1], ranges_), -1);
    const bool less = condition->op == ExprOp::kLt || condition->op == ExprOp::kLe;
    const bool rising = difference.coefficient_of(Expr(var_)) > 0;
    return less == rising ? Expr(0) : Expr(static_cast<int64_t>(lanes_) - 1);
  }

  Stmt let(const Stmt& stmt, const Expr& mask) {
    if (!varies(stmt->value)) return te::make_let(stmt->var, stmt->value, run(stmt->body, mask));
    if (stmt->value->type.dtype == DType::kInt64) {
      // Index arithmetic stays visible to the ramp detection.
      if (is_affine_index(stmt->value)) return run(te::substitute(stmt->body, stmt->var, stmt->value), mask);
    }
    const te::Var wide = te::make_var(stmt->var->name, stmt->var->dtype, lanes_);
    const Expr value = widen(stmt->value, mask);
    lets_.emplace(stmt->var.get(), Expr(wide));
    return te::make_let(wide, value, run(stmt->body, mask));
  }

  static bool is_affine_index(const Expr& expr) {
    bool loads = false;
    te::for_each_expr(expr, [&](const Expr& part) {
      loads =
          loads || part->op == ExprOp::kLoad || part->op == ExprOp::kCheckIndex || part->op == ExprOp::kCast;
    });
    return !loads;
  }

  Expr combine(const Expr& a, const Expr& b) const { return a ? te::logical_and(a, b) : b; }

  // Lanes of a scalar int64 expression: a ramp where it is affine in the loop variable.
  Expr lanes_of(const Expr& expr, const Expr& mask) {
    if (!varies(expr)) return expr;
    Expr form = te::bounded_form(expr, ranges_);
    if (form->type.lanes == 1 && !varies(form)) return form;
    Linear affine = te::fold_mods(te::to_affine(form, ranges_), ranges_);
    if (!te::equal(te::to_expr(affine, ranges_), form)) {
      // The terms as they stand: sums of some of them would get other forms, and those these again.
      affine = te::to_linear(form);
      const bool is_term = affine.terms.size() == 1 && te::equal(affine.terms[0].atom, form);
      if (affine.overflow || is_term) return rebuild(form, mask);
    }
    Linear base;
    base.constant = affine.constant;
    int64_t stride = 0;
    Expr rest;
    for (const te::Term& term : affine.terms) {
      if (term.atom->op == ExprOp::kVar && term.atom->var == var_) {
        stride = term.coefficient;
      } else if (!varies(term.atom)) {
        base.add(term.atom, term.coefficient);
      } else {
        Expr part = rebuild(term.atom, mask);
        if (term.coefficient != 1) part = part * Expr(term.coefficient);
        rest = rest ? rest + part : part;
      }
    }
    Expr result = te::to_expr(base, ranges_);
    if (stride != 0) result = te::ramp(result, Expr(stride), lanes_);
    if (rest) result = te::is_int(result, 0) ? rest : result + rest;
    return result->type.lanes == lanes_ ? result : te::broadcast(result, lanes_);
  }

  Expr widen(const Expr& expr, const Expr& mask) {
    if (!varies(expr)) return expr;
    if (expr->type == te::Type{}) return lanes_of(expr, mask);
    return rebuild(expr, mask);
  }

  Expr rebuild(const Expr& expr, const Expr& mask) {
    if (expr->op == ExprOp::kVar) {
      const auto found = lets_.find(expr->var.get());
      return found != lets_.end() ? found->second : te::ramp(Expr(0), Expr(1), lanes_);
    }
    if (expr->op == ExprOp::kLoad) return load(expr, mask);
    if (expr->op == ExprOp::kSelect && varies(expr->args[0])) return select(expr, mask);
    std::vector<Expr> args;
    for (const Expr& arg : expr->args) args.push_back(widen(arg, mask));
    if (expr->op == ExprOp::kCheckIndex && mask) {
      args[0] = te::select(mask, args[0], Expr(0));  // lanes that are off report nothing
    }
    return te::with_args(expr, std::move(args));
  }

  Expr load(const Expr& expr, const Expr& mask) {
    Expr own = expr->mask ? widen(expr->mask, mask) : Expr();
    Expr index = lanes_of(expr->args[0], mask);
    if (chosen_ && !is_row(index)) {
      ranges_.bind(var_, chosen_range_);
      const Expr row = lanes_of(expr->args[0], mask);
      ranges_.bind(var_, {0, lanes_ - 1});
      if (is_row(row)) {
        index = row;
        own = combine(own, chosen_);
      }
    }
    if (mask && !whole_register(expr->buffer, index)) own = own ? te::logical_and(mask, own) : mask;
    // Bounds may show that all lanes read one element. It may be outside where no lane is on, so that each
    // lane keeps its own condition.
    if (own && own->type.lanes > 1 && index->type.lanes == 1) index = te::broadcast(index, lanes_);
    return te::load(expr->buffer, {index}, own);
  }

  static bool is_row(const Expr& index) {
    return index->op == ExprOp::kRamp && te::is_int(index->args[1], 1);
  }

  // Where the condition picks lanes side by side, an index that was clamped for the sake of the others is
  // often a row: then the load is masked instead.
  Expr select(const Expr& expr, const Expr& mask) {
    const Expr condition = widen(expr->args[0], mask);
    const Expr yes = chosen(expr->args[1], condition, lanes_where(expr->args[0], true), mask);
    const Expr no =
        chosen(expr->args[2], te::logical_not(condition), lanes_where(expr->args[0], false), mask);
    return te::with_args(expr, {condition, yes, no});
  }

  Expr chosen(const Expr& value, const Expr& condition, const te::IndexRange& lanes, const Expr& mask) {
    const Expr before = chosen_;
    const te::IndexRange range_before = chosen_range_;
    if (!before) chosen_range_ = {0, lanes_ - 1};
    const te::IndexRange both = {std::max(chosen_range_.low, lanes.low),
                                 std::min(chosen_range_.high, lanes.high)};
    if (both.low <= both.high) {
      chosen_ = before ? te::logical_and(before, condition) : condition;
      chosen_range_ = both;
    }
    Expr result = widen(value, mask);
    if (result->type.lanes != lanes_) result = te::broadcast(result, lanes_);
    chosen_ = before;
    chosen_range_ = range_before;
    return result;
  }

  // Lanes on which the comparison holds (or does not); all of them where it says nothing about lanes alone.
  te::IndexRange lanes_where(const Expr& condition, bool holds) const {
    te::IndexRange lanes = {0, lanes_ - 1};
    const ExprOp op = condition->op;
    const bool less = op == ExprOp::kLt || op == ExprOp::kLe;
    if ((!less && op != ExprOp::kGt && op != ExprOp::kGe) ||
        condition->args[0]->type.dtype != DType::kInt64) {
      return lanes;
    }
    // difference < 0, or >= 0, in terms of coefficient * lane + constant.
    Linear difference = te::to_affine(condition->args[less ? 0 : 1], ranges_);
    difference.add(te::to_affine(condition->args[less ? 1 : 0], ranges_), -1);
    if (op == ExprOp::kLe || op == ExprOp::kGe) difference.constant -= 1;
    const int64_t step = difference.coefficient_of(Expr(var_));
    if (difference.terms.size() != 1 || (step != 1 && step != -1)) return lanes;
    const int64_t edge = -difference.constant * step;  // where the difference is 0
    if (holds == (step == 1)) {
      lanes.high = std::min(lanes.high, holds ? edge - 1 : edge);
    } else {
      lanes.low = std::max(lanes.low, holds ? edge + 1 : edge);
    }
    return lanes;
  }

  te::Var var_;
  int lanes_;
  te::BoundsContext& ranges_;
  const std::set<const te::BufferNode*>& crossed_;  // registers whose lanes are combined: tail lanes count
  // What the selects around the value choose it on: a mask and its lanes; null: everywhere.
  Expr chosen_;
  te::IndexRange chosen_range_;
  Expr first_;  // holds when any lane of the current mask is on; null: no mask
  std::unordered_map<const te::VarNode*, Expr> lets_;
};

void find_crossed(const Stmt& stmt, std::set<const te::BufferNode*>& crossed) {
  if (stmt->op == StmtOp::kStore) {
    te::for_each_expr(stmt->value, [&](const Expr& part) {
      if (part->op == ExprOp::kLoad && part->type.lanes > 1) crossed.insert(part->buffer.get());
    });
  }
  for (const Stmt& child : stmt->children) find_crossed(child, crossed);
  if (stmt->body) find_crossed(stmt->body, crossed);
  if (stmt->else_body) find_crossed(stmt->else_body, crossed);
}

class Vectorizer : public RangeRewriter {
public:
  explicit Vectorizer(const Stmt& body) { find_crossed(body, crossed_); }

protected:
  Stmt rewrite_for(const Stmt& stmt) override {
    if (stmt->for_kind != ForKind::kVectorized) return RangeRewriter::rewrite_for(stmt);
    const int64_t lanes = constant_or(rewrite(stmt->extent), -1);
    TM_CHECK(lanes >= 1 && te::is_int(rewrite(stmt->min), 0),
             "a vectorized loop has a constant extent and starts at 0");
    ranges_.bind(stmt->var, {0, lanes - 1});
    Stmt body = rewrite(stmt->body);
    if (lanes == 1) return body;
    return rewrite(LaneRewriter(stmt->var, static_cast<int>(lanes), ranges_, crossed_).run(body, Expr()));
  }

private:
  std::set<const te::BufferNode*> crossed_;  // looked up, never iterated
};

}  // namespace

te::Function run_vectorize(const te::Function& input, const target::Target&) {
  te::Function result = input;
  result.body = Vectorizer(input.body).rewrite(input.body);
  return result;
}

}  // namespace tensormill::lower
