#include "compiler/schedule/region.h"

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;

namespace {

using Relaxed = std::function<bool(const te::Var&)>;

bool any_relaxed(const Expr& expr, const Relaxed& relaxed) {
  if (expr->op == ExprOp::kVar) return relaxed(expr->var);
  for (const Expr& arg : expr->args) {
    if (any_relaxed(arg, relaxed)) return true;
  }
  return false;
}

te::Linear constant(int64_t value) {
  te::Linear result;
  result.constant = value;
  return result;
}

te::Linear apply_op(ExprOp op, const te::Linear& a, const te::Linear& b, const te::BoundsContext& ranges) {
  return te::to_affine(te::make(op, {te::to_expr(a, ranges), te::to_expr(b, ranges)}), ranges);
}

std::optional<SymbolicInterval> interval_of_atom(const Expr& atom, const Relaxed& relaxed,
                                                 const te::BoundsContext& ranges) {
  const auto arg = [&](size_t i) { return interval_of(atom->args[i], relaxed, ranges); };
  switch (atom->op) {
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod: {
      const int64_t* divisor = te::as_int(atom->args[1]);
      const std::optional<SymbolicInterval> value = arg(0);
      if (!divisor || *divisor <= 0) break;
      if (atom->op == ExprOp::kFloorMod) {
        if (!value) return SymbolicInterval{constant(0), constant(*divisor - 1)};
        te::Linear low = apply_op(ExprOp::kFloorDiv, value->low, constant(*divisor), ranges);
        low.add(apply_op(ExprOp::kFloorDiv, value->high, constant(*divisor), ranges), -1);
        const bool one_period = low.is_constant() && low.constant == 0;
        if (!one_period) return SymbolicInterval{constant(0), constant(*divisor - 1)};
      }
      if (!value) break;
      return SymbolicInterval{apply_op(atom->op, value->low, constant(*divisor), ranges),
                              apply_op(atom->op, value->high, constant(*divisor), ranges)};
    }
    case ExprOp::kMin:
    case ExprOp::kMax: {
      const std::optional<SymbolicInterval> a = arg(0), b = arg(1);
      if (!a || !b) break;
      return SymbolicInterval{apply_op(atom->op, a->low, b->low, ranges),
                              apply_op(atom->op, a->high, b->high, ranges)};
    }
    case ExprOp::kSelect: {
      const std::optional<SymbolicInterval> a = arg(1), b = arg(2);
      if (!a || !b) break;
      return unite(*a, *b, ranges);
    }
    default:
      break;
  }
  if (const std::optional<te::IndexRange> range = te::range_of(atom, ranges)) {
    return SymbolicInterval{constant(range->low), constant(range->high)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<SymbolicInterval> interval_of(const Expr& expr, const Relaxed& relaxed,
                                            const te::BoundsContext& ranges) {
  const te::Linear value = te::fold_mods(te::to_affine(expr, ranges), ranges);
  SymbolicInterval result{constant(value.constant), constant(value.constant)};
  for (const te::Term& term : value.terms) {
    std::optional<SymbolicInterval> part;
    if (!any_relaxed(term.atom, relaxed)) {
      part.emplace();
      part->low.add(term.atom, 1);
      part->high.add(term.atom, 1);
    } else if (term.atom->op == ExprOp::kVar) {
      const te::Interval* range = ranges.find(term.atom->var);
      if (range != nullptr && range->low && range->high)
        part = SymbolicInterval{constant(*range->low), constant(*range->high)};
    } else {
      part = interval_of_atom(term.atom, relaxed, ranges);
    }
    if (!part) return std::nullopt;
    const bool positive = term.coefficient > 0;
    result.low.add(positive ? part->low : part->high, term.coefficient);
    result.high.add(positive ? part->high : part->low, term.coefficient);
  }
  return result;
}

SymbolicInterval unite(const SymbolicInterval& a, const SymbolicInterval& b,
                       const te::BoundsContext& ranges) {
  return {apply_op(ExprOp::kMin, a.low, b.low, ranges), apply_op(ExprOp::kMax, a.high, b.high, ranges)};
}

}  // namespace tensormill::schedule
