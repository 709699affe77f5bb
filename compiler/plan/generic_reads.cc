#include "compiler/plan/generic_reads.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tensormill::plan {

namespace {

using te::Expr;
using te::ExprOp;

/// `seen`: what has been looked at, as a part of an index or not.
bool reads_by_data(const Expr& expr, bool in_index, std::set<std::pair<const te::ExprNode*, bool>>& seen) {
  const bool is_read = expr->op == ExprOp::kRead;
  if (in_index && is_read) return true;
  if (!seen.emplace(expr.get(), in_index).second) return false;
  return std::any_of(expr->args.begin(), expr->args.end(),
                     [&](const Expr& arg) { return reads_by_data(arg, in_index || is_read, seen); });
}

}  // namespace

bool is_within(const Expr& index, const Expr& bound, const te::BoundsContext& context) {
  return context.proves(index >= Expr(0)) && context.proves(index < bound);
}

bool can_mask(const te::ExprNode& select) {
  bool can = true;
  te::for_each_expr(select.args[0], [&](const Expr& part) {
    can = can && part->op != ExprOp::kRead && !part->type.is_float();
  });
  std::set<std::pair<const te::ExprNode*, bool>> seen;
  return can && !reads_by_data(select.args[1], false, seen);
}

}  // namespace tensormill::plan
