/// What the loops of a generic nest ask of an element before they load it, and how its indices and conditions
/// are put together. Thread-safety: pure functions.
#pragma once

#include <unordered_set>
#include <vector>

#include "compiler/te/rewrite_reads.h"
#include "compiler/te/simplify.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::plan {

/// Whether the context shows that the index is in [0, bound).
bool is_within(const te::Expr& index, const te::Expr& bound, const te::BoundsContext& context);
/// Whether the select's condition is of places alone, and no data that it leaves out say what is read: then
/// loads of what it chooses may have the condition as their mask.
bool can_mask(const te::ExprNode& select);
/// Whether a condition is of places alone, none of which is looked up.
bool is_of_indices(const te::Expr& condition);
bool are_equal(const std::vector<te::Expr>& a, const std::vector<te::Expr>& b);

/// Both conditions; null is none.
te::Expr both(const te::Expr& a, const te::Expr& b);
te::Expr all_of(const std::vector<te::Expr>& conditions);
/// What a conjunction is made of, behind what is there.
void add_parts(const te::Expr& condition, std::vector<te::Expr>& parts);

/// Calls visit on each node of the DAG once, from the root on.
template <typename Visit>
void visit_once(const te::Expr& expr, std::unordered_set<const te::ExprNode*>& seen, const Visit& visit) {
  if (!seen.insert(expr.get()).second) return;
  visit(expr);
  for (const te::Expr& arg : expr->args) visit_once(arg, seen, visit);
}

/// Simplifies the indices of reads by what `context`, which outlives it, has when they are rewritten.
te::ReadRewriter simple_indices(const te::BoundsContext& context);

}  // namespace tensormill::plan
