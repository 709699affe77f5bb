/// What every rewriting of expressions does at a node: its arguments and its mask, each rewritten.
/// Thread-safety: a pure function, as far as the given one is.
#pragma once

#include <utility>
#include <vector>

#include "compiler/te/expr.h"

namespace tensormill::te {

struct RewrittenArgs {
  std::vector<Expr> args;
  Expr mask;             ///< empty where the node has none
  bool changed = false;  ///< whether any of them is another node than before

  /// `expr`, whose arguments these are the new ones of: the node itself when nothing changed.
  Expr of(const Expr& expr) && { return changed ? with_args(expr, std::move(args), std::move(mask)) : expr; }
};

/// Calls `rewrite` with each argument of `expr` in order, then with its mask.
template <typename Rewrite>
RewrittenArgs rewrite_args(const Expr& expr, Rewrite&& rewrite) {
  RewrittenArgs result;
  result.args.reserve(expr->args.size());
  for (const Expr& arg : expr->args) {
    result.args.push_back(rewrite(arg));
    result.changed = result.changed || !result.args.back().same_as(arg);
  }
  if (expr->mask) {
    result.mask = rewrite(expr->mask);
    result.changed = result.changed || !result.mask.same_as(expr->mask);
  }
  return result;
}

}  // namespace tensormill::te
