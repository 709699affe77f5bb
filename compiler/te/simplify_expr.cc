#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/te/op_class.h"
#include "compiler/te/simplifier.h"
#include "compiler/te/stmt.h"

namespace tensormill::te {
namespace {

bool is_float_imm(const Expr& expr, double value) {
  return expr->op == ExprOp::kFloatImm && expr->float_value == value &&
         std::signbit(expr->float_value) == std::signbit(value);
}

bool is_index(const Expr& expr) { return expr->type == Type{}; }
bool is_true(const Expr& expr) { return expr->type.dtype == DType::kBool && is_int(expr, 1); }
bool is_false(const Expr& expr) { return expr->type.dtype == DType::kBool && is_int(expr, 0); }

Expr truth(bool value, int lanes) { return int_imm(DType::kBool, value ? 1 : 0, lanes); }

/// x + 0, x * 1, x - 0, x / 1 for any type; for floats only where the identity is exact for -0, too.
Expr arithmetic_identity(const Expr& expr) {
  const Expr &a = expr->args[0], &b = expr->args[1];
  const bool is_float = expr->type.is_float();
  const auto is_zero = [](const Expr& e) { return is_int(e, 0); };
  const auto is_one = [](const Expr& e) { return is_int(e, 1) || is_float_imm(e, 1.0); };
  switch (expr->op) {
    case ExprOp::kAdd:
      if (is_float ? is_float_imm(b, -0.0) : is_zero(b)) return a;
      if (is_float ? is_float_imm(a, -0.0) : is_zero(a)) return b;
      return {};
    case ExprOp::kSub:
      if (is_float ? is_float_imm(b, 0.0) : is_zero(b)) return a;
      return {};
    case ExprOp::kMul:
      if (is_one(b)) return a;
      if (is_one(a)) return b;
      if (!is_float && is_zero(a) && !has_check(b)) return a;
      if (!is_float && is_zero(b) && !has_check(a)) return b;
      return {};
    case ExprOp::kDiv:
    case ExprOp::kFloorDiv:
      return is_one(b) ? a : Expr();
    case ExprOp::kShl:
    case ExprOp::kShr:
      return is_zero(b) ? a : Expr();
    case ExprOp::kMin:
    case ExprOp::kMax:
      return equal(a, b) ? a : Expr();
    default:
      return {};
  }
}

Expr boolean_identity(const Expr& expr) {
  const Expr &a = expr->args[0], &b = expr->args[1];
  if (expr->op == ExprOp::kBitAnd) {
    if (is_true(a) || (is_false(b) && !has_check(a)) || equal(a, b)) return b;
    if (is_true(b) || (is_false(a) && !has_check(b))) return a;
  } else if (expr->op == ExprOp::kBitOr) {
    if (is_false(a) || (is_true(b) && !has_check(a)) || equal(a, b)) return b;
    if (is_false(b) || (is_true(a) && !has_check(b))) return a;
  }
  return {};
}

}  // namespace

bool has_check(const Expr& expr) {
  if (op_class(expr->op) == OpClass::kCheck || (expr->mask && has_check(expr->mask))) return true;
  return std::any_of(expr->args.begin(), expr->args.end(), &has_check);
}

ExprOp opposite(ExprOp op) {
  switch (op) {
    case ExprOp::kEq:
      return ExprOp::kNe;
    case ExprOp::kNe:
      return ExprOp::kEq;
    case ExprOp::kLt:
      return ExprOp::kGe;
    case ExprOp::kLe:
      return ExprOp::kGt;
    case ExprOp::kGt:
      return ExprOp::kLe;
    default:
      return ExprOp::kLt;
  }
}

Expr Simplifier::visit(const Expr& expr) {
  if (is_const(expr)) return expr;
  if (expr->op == ExprOp::kVar) {
    const Interval* range = is_index(expr) ? context_.find(expr->var) : nullptr;
    return range != nullptr && range->is_point() ? Expr(*range->low) : expr;
  }
  if (const auto found = done_.find(expr.get()); found != done_.end()) return found->second;
  const Expr result = visit_uncached(expr);
  done_.emplace(expr.get(), result);
  // Keeps the key's address from being used again while the table lives.
  kept_.push_back(expr);
  return result;
}

Expr Simplifier::visit_uncached(const Expr& expr) {
  if (is_index(expr)) {
    switch (expr->op) {
      case ExprOp::kAdd:
      case ExprOp::kSub:
      case ExprOp::kMul:
      case ExprOp::kNeg: {
        Linear linear = visit_linear(expr);
        recombine(linear);
        split_remainders(linear);
        const Expr sum = from_linear(std::move(linear));
        if (has_check(sum) || !has_check(expr)) return sum;
        // It cancels, or is times 0; what is checked stays, unless it is in range.
        const Expr kept = rebuild(expr, visit_args(expr), {});
        return has_check(kept) ? kept : sum;
      }
      default:
        break;
    }
  }
  std::vector<Expr> args = visit_args(expr);
  Expr mask = expr->mask ? visit(expr->mask) : Expr();
  if (mask && is_false(mask)) return imm_like(expr->type, 0);
  const Expr rebuilt = mask && is_true(mask) ? load(expr->buffer, std::move(args))
                                             : rebuild(expr, std::move(args), std::move(mask));
  return is_const(rebuilt) ? rebuilt : simplify_node(rebuilt);
}

std::vector<Expr> Simplifier::visit_args(const Expr& expr) {
  std::vector<Expr> args;
  for (const Expr& arg : expr->args) args.push_back(visit(arg));
  return args;
}

Expr Simplifier::rebuild(const Expr& expr, std::vector<Expr> args, Expr mask) const {
  bool same = expr->mask.same_as(mask);
  for (size_t i = 0; same && i < args.size(); ++i) same = args[i].same_as(expr->args[i]);
  return same ? expr : with_args(expr, std::move(args), std::move(mask));
}

/// As to_linear, with every atom simplified on the way.
Linear Simplifier::visit_linear(const Expr& expr) {
  if (is_index(expr)) {
    Linear result;
    switch (expr->op) {
      case ExprOp::kAdd:
      case ExprOp::kSub:
        result = visit_linear(expr->args[0]);
        result.add(visit_linear(expr->args[1]), expr->op == ExprOp::kAdd ? 1 : -1);
        return result;
      case ExprOp::kNeg:
        result.add(visit_linear(expr->args[0]), -1);
        return result;
      case ExprOp::kMul: {
        const Linear a = visit_linear(expr->args[0]), b = visit_linear(expr->args[1]);
        if (a.is_constant() || b.is_constant()) {
          result.add(a.is_constant() ? b : a, a.is_constant() ? a.constant : b.constant);
          return result;
        }
        return to_linear(from_linear(a) * from_linear(b));
      }
      default:
        break;
    }
  }
  return to_linear(visit(expr));
}

Expr Simplifier::simplify_node(const Expr& expr) {
  const OpClass group = op_class(expr->op);
  if (expr->type.lanes > 1 && expr->type.dtype == DType::kInt64 && group != OpClass::kMemory) {
    if (Expr result = as_ramp(expr)) return result;
  }
  if (group == OpClass::kCompare) return simplify_compare(expr);
  if (expr->op == ExprOp::kSelect) return simplify_select(expr);
  if (expr->op == ExprOp::kNot) return simplify_not(expr);
  if (expr->op == ExprOp::kCheckIndex) return simplify_check(expr);
  if (expr->args.size() == 2 && group != OpClass::kMemory && group != OpClass::kTyped) {
    const Expr identity =
        expr->type.dtype == DType::kBool ? boolean_identity(expr) : arithmetic_identity(expr);
    if (identity) return identity;
  }
  if (!is_index(expr)) return expr;
  switch (expr->op) {
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod:
      return simplify_division(expr);
    case ExprOp::kDiv:
    case ExprOp::kMod: {
      const Prover prover(context_);
      if (prover.range(expr->args[0]).low < 0 || prover.range(expr->args[1]).low < 0) return expr;
      const ExprOp op = expr->op == ExprOp::kDiv ? ExprOp::kFloorDiv : ExprOp::kFloorMod;
      return simplify_node_or_const(make(op, expr->args));
    }
    case ExprOp::kMin:
    case ExprOp::kMax:
      return simplify_extremum(expr);
    default:
      return expr;
  }
}

Expr Simplifier::simplify_node_or_const(const Expr& expr) {
  return is_const(expr) ? expr : simplify_node(expr);
}

Expr Simplifier::simplify_extremum(const Expr& expr) {
  const Expr &a = expr->args[0], &b = expr->args[1];
  const bool is_min = expr->op == ExprOp::kMin;
  if (context_.proves(a <= b) && !has_check(is_min ? b : a)) return is_min ? a : b;
  if (context_.proves(b <= a) && !has_check(is_min ? a : b)) return is_min ? b : a;
  // One order of the operands, constants last, so that equal minima are equal trees.
  const bool swap = is_const(a) || (!is_const(b) && compare(b, a) < 0);
  return swap ? make(expr->op, {b, a}) : expr;
}

Expr Simplifier::simplify_compare(const Expr& expr) {
  const Expr &a = expr->args[0], &b = expr->args[1];
  if (a->type.dtype != DType::kInt64) {
    if (a->type.is_float() || !equal(a, b) || has_check(a)) return expr;
    const bool reflexive = expr->op == ExprOp::kEq || expr->op == ExprOp::kLe || expr->op == ExprOp::kGe;
    return truth(reflexive, expr->type.lanes);
  }
  const bool holds = context_.proves(expr),
             fails = !holds && context_.proves(make(opposite(expr->op), {a, b}));
  if (holds || fails) return has_check(expr) ? expr : truth(holds, expr->type.lanes);
  if (expr->type.lanes != 1) return expr;
  const Expr shorter = cancel(expr);
  return has_check(expr) && !has_check(shorter) ? expr : shorter;
}

/// Moves common terms out of a comparison: x + 3 < y + 3 is x < y where nothing wraps.
Expr Simplifier::cancel(const Expr& expr) {
  const Linear a = to_linear(expr->args[0]), b = to_linear(expr->args[1]);
  Linear difference = a;
  difference.add(b, -1);
  const size_t constants = (a.constant != 0 ? 1 : 0) + (b.constant != 0 ? 1 : 0);
  const size_t left = difference.constant != 0 ? 1 : 0;
  if (difference.terms.size() + left >= a.terms.size() + b.terms.size() + constants) return expr;
  const Prover prover(context_);
  if (!prover.is_exact(a) || !prover.is_exact(b)) return expr;
  Linear positive, negative;
  for (const Term& term : difference.terms) {
    if (term.coefficient == std::numeric_limits<int64_t>::min()) return expr;
    (term.coefficient > 0 ? positive : negative)
        .add(term.atom, term.coefficient > 0 ? term.coefficient : -term.coefficient);
  }
  if (positive.is_constant()) {
    positive.add_constant(difference.constant);
  } else {
    negative.add(difference, 0);
    if (difference.constant == std::numeric_limits<int64_t>::min()) return expr;
    negative.add_constant(-difference.constant);
  }
  if (!prover.is_exact(positive) || !prover.is_exact(negative)) return expr;
  return make(expr->op, {from_linear(std::move(positive)), from_linear(std::move(negative))});
}

Expr Simplifier::simplify_select(const Expr& expr) {
  const Expr &condition = expr->args[0], &a = expr->args[1], &b = expr->args[2];
  if (is_true(condition) && !has_check(b)) return a;
  if (is_false(condition) && !has_check(a)) return b;
  if (equal(a, b) && !has_check(condition)) return a;
  if (expr->type.dtype == DType::kBool) {
    if (is_true(a) && is_false(b)) return condition;
    if (is_false(a) && is_true(b)) return simplify_node_or_const(logical_not(condition));
  }
  return expr;
}

Expr Simplifier::simplify_not(const Expr& expr) {
  const Expr& a = expr->args[0];
  if (expr->type.dtype != DType::kBool) return expr;
  if (a->op == ExprOp::kNot) return a->args[0];
  if (op_class(a->op) != OpClass::kCompare) return expr;
  // The opposite of a float comparison is not the negation: NaN fails both.
  const bool ordered = a->args[0]->type.is_float() && a->op != ExprOp::kEq && a->op != ExprOp::kNe;
  return ordered ? expr : make(opposite(a->op), a->args);
}

Expr Simplifier::simplify_check(const Expr& expr) {
  const Expr &index = expr->args[0], &extent = expr->args[1];
  // What is read of a tensor is never an index by itself (verify.h).
  bool reads = false;
  for_each_expr(index,
                [&](const Expr& part) { reads |= part->op == ExprOp::kLoad || part->op == ExprOp::kRead; });
  if (reads) return expr;
  const Expr zero = int_imm(DType::kInt64, 0, index->type.lanes);
  return context_.proves(index >= zero) && context_.proves(index < extent) ? index : expr;
}

/// A vector that is affine in its lane number as a ramp or a broadcast.
Expr Simplifier::as_ramp(const Expr& expr) {
  if (expr->op == ExprOp::kRamp) {
    return is_int(expr->args[1], 0) ? broadcast(expr->args[0], expr->type.lanes) : Expr();
  }
  if (expr->op == ExprOp::kBroadcast) return {};
  const LaneView view = view_lanes(expr, context_);
  if (view.has_opaque || !view.lane) return {};
  Simplifier inner(view.context);
  const Linear linear = to_linear(inner.visit(view.expr));
  Linear base, stride;
  base.constant = linear.constant;
  for (const Term& term : linear.terms) {
    if (term.atom->op == ExprOp::kVar && term.atom->var == view.lane) {
      stride.add_constant(term.coefficient);
    } else if (!mentions(term.atom, view.lane)) {
      base.add(term.atom, term.coefficient);
    } else {
      const Expr factor = without_factor(term.atom, view.lane);
      if (!factor) return {};
      stride.add(factor, term.coefficient);
    }
  }
  const Expr step = from_linear(std::move(stride)), start = from_linear(std::move(base));
  return is_int(step, 0) ? broadcast(start, expr->type.lanes) : ramp(start, step, expr->type.lanes);
}

/// x for an atom x * var where x is free of var, null otherwise.
Expr Simplifier::without_factor(const Expr& atom, const Var& var) {
  if (atom->op != ExprOp::kMul) return {};
  for (size_t i = 0; i < 2; ++i) {
    const Expr &factor = atom->args[i], &other = atom->args[1 - i];
    if (mentions(other, var)) continue;
    if (factor->op == ExprOp::kVar && factor->var == var) return other;
    if (Expr inner = without_factor(factor, var)) return inner * other;
  }
  return {};
}

Expr simplify(const Expr& expr, const BoundsContext& context) { return Simplifier(context).visit(expr); }

Expr simplify(const Expr& expr) {
  const BoundsContext context;
  return simplify(expr, context);
}

}  // namespace tensormill::te
