/// Conditions over indices: how they are put together and taken apart, and what they are made of.
/// Thread-safety: pure functions.
#pragma once

#include <unordered_set>
#include <vector>

#include "compiler/te/rewrite_reads.h"
#include "compiler/te/simplify.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::schedule {

/// Whether a condition is of places alone, none of which is looked up.
bool is_of_indices(const te::Expr& condition);
bool are_equal(const std::vector<te::Expr>& a, const std::vector<te::Expr>& b);

/// Both conditions; null is none.
te::Expr both(const te::Expr& a, const te::Expr& b);
te::Expr all_of(const std::vector<te::Expr>& conditions);
/// Appends what a conjunction is made of.
void split_conjunction(const te::Expr& condition, std::vector<te::Expr>& parts);

/// Calls visit on each node of the DAG once, from the root on.
template <typename Visit>
void visit_once(const te::Expr& expr, std::unordered_set<const te::ExprNode*>& seen, const Visit& visit) {
  if (!seen.insert(expr.get()).second) return;
  visit(expr);
  for (const te::Expr& arg : expr->args) visit_once(arg, seen, visit);
}

/// Simplifies the indices of reads by what `context`, which outlives it, has when they are rewritten.
te::ReadRewriter simple_indices(const te::BoundsContext& context);

}  // namespace tensormill::schedule
