#include "compiler/schedule/conditions.h"

#include <algorithm>

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;

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

void split_conjunction(const Expr& condition, std::vector<Expr>& parts) {
  if (condition->op != ExprOp::kBitAnd) return parts.push_back(condition);
  for (const Expr& part : condition->args) split_conjunction(part, parts);
}

te::ReadRewriter simple_indices(const te::BoundsContext& context) {
  return te::ReadRewriter([&context](const Expr& read, const std::vector<Expr>& indices) {
    std::vector<Expr> simple;
    for (const Expr& index : indices) simple.push_back(te::simplify(index, context));
    return te::read(read->tensor, std::move(simple), read->output);
  });
}

}  // namespace tensormill::schedule
