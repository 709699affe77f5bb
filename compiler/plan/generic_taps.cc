#include "compiler/plan/generic_taps.h"

#include <algorithm>

#include "compiler/te/linear.h"
#include "compiler/te/rewrite_reads.h"

namespace tensormill::plan {

namespace {

using te::Expr;
using te::ExprOp;

bool is_of_indices(const Expr& condition) {
  bool is = true;
  te::for_each_expr(condition, [&](const Expr& part) {
    is = is && part->op != ExprOp::kRead && part->op != ExprOp::kCheckIndex && !part->type.is_float();
  });
  return is;
}

void add_parts(const Expr& condition, std::vector<Expr>& parts) {
  if (condition->op != ExprOp::kBitAnd) return parts.push_back(condition);
  for (const Expr& part : condition->args) add_parts(part, parts);
}

}  // namespace

std::optional<Taps> taps_of(const te::Reduction& reduction, const te::BoundsContext& context) {
  if (reduction.source.size() != 1 || reduction.source[0]->op != ExprOp::kSelect) return std::nullopt;
  const std::vector<Expr>& chosen = reduction.source[0]->args;
  if (!te::equal(chosen[2], reduction.identity[0]) || !is_of_indices(chosen[0])) return std::nullopt;
  Taps taps;
  te::BoundsContext within = context;
  within.assume(chosen[0]);
  te::ReadRewriter rewriter([&](const Expr& read, const std::vector<Expr>& indices) {
    std::vector<Expr> simple;
    for (const Expr& index : indices) simple.push_back(te::simplify(index, within));
    return te::read(read->tensor, std::move(simple), read->output);
  });
  taps.value = rewriter.run(chosen[1]);
  add_parts(chosen[0], taps.conditions);
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
