#include "compiler/plan/generic_taps.h"

#include "compiler/schedule/conditions.h"
#include "compiler/te/linear.h"

namespace tensormill::plan {

using schedule::is_of_indices;
using schedule::simple_indices;
using schedule::split_conjunction;
using te::Expr;
using te::ExprOp;

std::optional<Taps> taps_of(const te::Reduction& reduction, const te::BoundsContext& context) {
  if (reduction.source.size() != 1 || reduction.source[0]->op != ExprOp::kSelect) return std::nullopt;
  const std::vector<Expr>& chosen = reduction.source[0]->args;
  if (!te::equal(chosen[2], reduction.identity[0]) || !is_of_indices(chosen[0])) return std::nullopt;
  Taps taps;
  te::BoundsContext within = context;
  within.assume(chosen[0]);
  taps.value = simple_indices(within).run(chosen[1]);
  split_conjunction(chosen[0], taps.conditions);
  return taps;
}

Expr for_all(const Expr& condition, const te::Var& var, int64_t count) {
  if (!te::mentions(condition, var)) return condition;
  // A comparison of what is linear in the variable holds in between where it holds at both ends.
  const bool compares = condition->op == ExprOp::kLt || condition->op == ExprOp::kLe ||
                        condition->op == ExprOp::kGt || condition->op == ExprOp::kGe;
  if (!compares) return Expr();
  te::Linear difference = te::to_linear(condition->args[0]);
  difference.add(te::to_linear(condition->args[1]), -1);
  const int64_t step = difference.coefficient_of(Expr(var));
  difference.add(Expr(var), -step);
  if (difference.overflow || te::mentions(te::from_linear(difference), var)) return Expr();
  const bool is_below = condition->op == ExprOp::kLt || condition->op == ExprOp::kLe;
  return te::substitute(condition, var, Expr(is_below == (step > 0) ? count - 1 : 0));
}

}  // namespace tensormill::plan
