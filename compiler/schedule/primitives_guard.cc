// Reductions over windows that reach into the padding: the condition of each element becomes a guard around
// the update, so that what lies outside costs nothing where loops are partitioned.
#include "compiler/schedule/conditions.h"
#include "compiler/schedule/primitives.h"

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;

namespace {

bool is_bound(const Expr& condition, ExprOp op, const Expr& value, int64_t bound) {
  return condition->op == op && te::is_int(condition->args[1], bound) && te::equal(condition->args[0], value);
}

// Indices that were clamped into the input for the sake of the taps outside it: under the guards the clamp
// does nothing.
Expr without_clamps(const Expr& expr, const std::vector<Expr>& guards) {
  if (expr->args.empty()) return expr;
  std::vector<Expr> args;
  for (const Expr& arg : expr->args) args.push_back(without_clamps(arg, guards));
  if (expr->op == ExprOp::kMin || expr->op == ExprOp::kMax) {
    const int64_t* bound = te::as_int(args[1]);
    for (const Expr& guard : guards) {
      const bool clamps =
          bound && (expr->op == ExprOp::kMin ? is_bound(guard, ExprOp::kLt, args[0], *bound + 1)
                                             : is_bound(guard, ExprOp::kGe, args[0], *bound));
      if (clamps) return args[0];
    }
  }
  return te::with_args(expr, std::move(args), expr->mask);
}

}  // namespace

bool has_conditions(const Stage& stage) {
  if (!stage.reduction || stage.dtypes.size() != 1) return false;
  const Expr& source = stage.reduction->source[0];
  return source->op == ExprOp::kSelect && te::equal(source->args[2], stage.reduction->identity[0]);
}

void apply_guard(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  if (!has_conditions(stage))
    reject("stage " + args[0] + " does not reduce one select(condition, x, neutral element)");
  const Expr source = stage.reduction->source[0];
  std::vector<Expr> guards;
  split_conjunction(source->args[0], guards);
  te::Reduction reduction = *stage.reduction;
  reduction.source[0] = without_clamps(source->args[1], guards);
  stage.reduction = std::make_shared<const te::Reduction>(std::move(reduction));
  stage.update_guards.insert(stage.update_guards.end(), guards.begin(), guards.end());
}

}  // namespace tensormill::schedule
