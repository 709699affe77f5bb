#include <algorithm>
#include <limits>

#include "compiler/te/op_class.h"
#include "compiler/te/prover.h"
#include "compiler/te/scalar_ops.h"
#include "compiler/te/simplify.h"

namespace tensormill::te {
namespace {

Interval as_interval(const Range& range) {
  Interval result;
  if (range.known_low) result.low = static_cast<int64_t>(range.low);
  if (range.known_high) result.high = static_cast<int64_t>(range.high);
  return result;
}

bool reads_memory(const Expr& expr) {
  bool found = false;
  for_each_expr(expr, [&found](const Expr& part) { found |= op_class(part->op) == OpClass::kMemory; });
  return found;
}

class LaneRewriter {
public:
  explicit LaneRewriter(LaneView& view) : view_(view) {}

  Expr scalar(const Expr& expr) {
    if (expr->type.lanes == 1) return expr;
    const Type type = expr->type.with_lanes(1);
    switch (expr->op) {
      case ExprOp::kIntImm:
        return int_imm(type.dtype, expr->int_value);
      case ExprOp::kFloatImm:
        return float_imm(type.dtype, expr->float_value);
      case ExprOp::kBroadcast:
        return expr->args[0];
      case ExprOp::kVar:
        return opaque_variable(expr);
      case ExprOp::kRamp: {
        bind_lane(expr->type.lanes);
        const Expr lane = cast(type.dtype, Expr(view_.lane));
        return expr->args[0] + expr->args[1] * lane;
      }
      default:
        break;
    }
    const OpClass group = op_class(expr->op);
    if (group == OpClass::kMemory || group == OpClass::kTyped || group == OpClass::kLaneReduce)
      return opaque(type);
    std::vector<Expr> args;
    for (const Expr& arg : expr->args) args.push_back(scalar(arg));
    return make(expr->op, std::move(args));
  }

private:
  void bind_lane(int lanes) {
    if (!view_.lane) view_.lane = make_var("lane");
    view_.context.bind(view_.lane, {0, lanes - 1});
  }

  Expr opaque(Type type, const Interval& range = {}) {
    view_.has_opaque = true;
    const Var value = make_var("opaque", type.dtype);
    view_.context.bind(value, range);
    return Expr(value);
  }

  /// A vector let: one unknown lane of it, the same wherever it is named.
  Expr opaque_variable(const Expr& expr) {
    Expr& known = variables_[expr->var.get()];
    if (!known) {
      const Interval* range = view_.context.find(expr->var);
      known = opaque(expr->type.with_lanes(1), range != nullptr ? *range : Interval{});
    }
    return known;
  }

  LaneView& view_;
  std::unordered_map<const VarNode*, Expr> variables_;
};

}  // namespace

LaneView view_lanes(const Expr& expr, const BoundsContext& context) {
  LaneView view{{}, {}, context};
  view.expr = LaneRewriter(view).scalar(expr);
  return view;
}

std::vector<Expr> view_lanes(const std::vector<Expr>& exprs, LaneView& view) {
  LaneRewriter rewriter(view);
  std::vector<Expr> result;
  for (const Expr& expr : exprs) result.push_back(rewriter.scalar(expr));
  return result;
}

void BoundsContext::bind_extent(const Var& var, const Expr& min, const Expr& extent) {
  const Expr last = min + extent - 1;
  Interval range;
  range.low = bounds(min).low;
  range.high = bounds(last).high;
  const Prover prover(*this);
  const Range first_range = prover.range(min), last_range = prover.range(last);
  const bool is_index = first_range.low > std::numeric_limits<int64_t>::min() &&
                        last_range.high < std::numeric_limits<int64_t>::max();
  ranges_[var.get()] = {range, is_index};
  const Expr index(var);
  if (!is_const(min) && is_index) assume_nonpositive(min - index, var.get());
  if (!is_const(last) && is_index) assume_nonpositive(index - last, var.get());
}

void BoundsContext::bind_value(const Var& var, const Expr& value) {
  if (var->dtype != DType::kInt64) return;
  bind(var, bounds(value));
  if (var->lanes != 1 || reads_memory(value) || !Prover(*this).is_exact(to_linear(value))) return;
  for (const Expr& difference : {Expr(var) - value, value - Expr(var)})
    facts_.push_back({var.get(), std::make_shared<const Linear>(to_linear(difference))});
}

void BoundsContext::unbind(const Var& var) {
  ranges_.erase(var.get());
  std::erase_if(facts_, [&var](const Fact& fact) { return fact.owner == var.get(); });
}

void BoundsContext::assume_nonpositive(const Expr& expr, const VarNode* owner) {
  Linear linear = to_linear(expr);
  if (linear.overflow || linear.is_constant()) return;
  if (linear.terms.size() == 1 && linear.terms[0].atom->op == ExprOp::kVar) {
    // coefficient * var + constant <= 0 is an end of the variable's own range.
    const int64_t by = linear.terms[0].coefficient;
    auto [entry, fresh] = ranges_.try_emplace(linear.terms[0].atom->var.get(), Entry{{}, true});
    Interval& range = entry->second.range;
    if (by > 0) {
      const int64_t high = signed_floordiv(wrapping_neg(linear.constant), by);
      range.high = range.high ? std::min(*range.high, high) : high;
    } else {
      const int64_t low = wrapping_neg(signed_floordiv(wrapping_neg(linear.constant), wrapping_neg(by)));
      range.low = range.low ? std::max(*range.low, low) : low;
    }
    return;
  }
  facts_.push_back({owner, std::make_shared<const Linear>(std::move(linear))});
}

std::vector<Expr> BoundsContext::conditions() const {
  std::vector<Expr> conditions;
  for (const Fact& fact : facts_) conditions.push_back(from_linear(*fact.nonpositive) <= Expr(0));
  return conditions;
}

void BoundsContext::assume(const Expr& condition) {
  if (condition->type.lanes != 1) return;
  if (condition->op == ExprOp::kBitAnd) {
    assume(condition->args[0]);
    assume(condition->args[1]);
    return;
  }
  Expr positive = condition;
  if (condition->op == ExprOp::kNot) {
    const Expr& inner = condition->args[0];
    if (inner->op == ExprOp::kNot) return assume(inner->args[0]);
    if (inner->op == ExprOp::kBitOr) {
      assume(logical_not(inner->args[0]));
      assume(logical_not(inner->args[1]));
      return;
    }
    if (op_class(inner->op) != OpClass::kCompare || inner->args[0]->type.is_float()) return;
    switch (inner->op) {
      case ExprOp::kLt:
        positive = inner->args[0] >= inner->args[1];
        break;
      case ExprOp::kLe:
        positive = inner->args[0] > inner->args[1];
        break;
      case ExprOp::kGt:
        positive = inner->args[0] <= inner->args[1];
        break;
      case ExprOp::kGe:
        positive = inner->args[0] < inner->args[1];
        break;
      case ExprOp::kNe:
        positive = inner->args[0] == inner->args[1];
        break;
      default:
        return;
    }
  }
  if (op_class(positive->op) != OpClass::kCompare || positive->args[0]->type != Type{}) return;
  // What is in memory may change inside the guard.
  if (reads_memory(positive)) return;
  const Expr &a = positive->args[0], &b = positive->args[1];
  const Prover prover(*this);
  if (!prover.is_exact(to_linear(a)) || !prover.is_exact(to_linear(b))) return;
  switch (positive->op) {
    case ExprOp::kLt:
      return assume_nonpositive(a - b + 1, nullptr);
    case ExprOp::kLe:
      return assume_nonpositive(a - b, nullptr);
    case ExprOp::kGt:
      return assume_nonpositive(b - a + 1, nullptr);
    case ExprOp::kGe:
      return assume_nonpositive(b - a, nullptr);
    case ExprOp::kEq:
      assume_nonpositive(a - b, nullptr);
      assume_nonpositive(b - a, nullptr);
      return;
    default:
      return;
  }
}

Interval BoundsContext::bounds(const Expr& expr) const {
  if (expr->type.dtype != DType::kInt64) return {};
  if (expr->type.lanes == 1) return as_interval(Prover(*this).range(expr));
  const LaneView view = view_lanes(expr, *this);
  return as_interval(Prover(view.context).range(view.expr));
}

bool BoundsContext::proves(const Expr& condition) const {
  if (condition->type.lanes == 1) return Prover(*this).holds(condition);
  const LaneView view = view_lanes(condition, *this);
  return Prover(view.context).holds(view.expr);
}

const Interval* BoundsContext::find(const Var& var) const {
  const auto found = ranges_.find(var.get());
  return found == ranges_.end() ? nullptr : &found->second.range;
}

}  // namespace tensormill::te
