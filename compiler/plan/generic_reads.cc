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

bool is_of_indices(const Expr& condition) {
  bool is = true;
  te::for_each_expr(condition, [&](const Expr& part) {
    is = is && part->op != ExprOp::kRead && part->op != ExprOp::kCheckIndex && !part->type.is_float();
  });
  return is;
}

bool are_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& left, const Expr& right) { return te::equal(left, right); });
}

Expr both(const Expr& a, const Expr& b) { return !a ? b : b ? te::logical_and(a, b) : a; }

Expr all_of(const std::vector<Expr>& conditions) {
  Expr all;
  for (const Expr& condition : conditions) all = both(all, condition);
  return all;
}

void add_parts(const Expr& condition, std::vector<Expr>& parts) {
  if (condition->op != ExprOp::kBitAnd) return parts.push_back(condition);
  for (const Expr& part : condition->args) add_parts(part, parts);
}

te::ReadRewriter simple_indices(const te::BoundsContext& context) {
  return te::ReadRewriter([&context](const Expr& read, const std::vector<Expr>& indices) {
    std::vector<Expr> simple;
    for (const Expr& index : indices) simple.push_back(te::simplify(index, context));
    return te::read(read->tensor, std::move(simple), read->output);
  });
}

}  // namespace tensormill::plan
