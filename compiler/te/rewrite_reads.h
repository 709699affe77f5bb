/// Expressions with their reads replaced. Thread-safety: an object belongs to one thread.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "compiler/te/expr.h"

namespace tensormill::te {

/// Replaces every read, from the leaves up. What expressions share stays shared, in one and from one to the
/// next: a node that was rewritten is not again.
class ReadRewriter {
public:
  /// What stands for the read `read`, whose index has been rewritten to `index`.
  using Replace = std::function<Expr(const Expr& read, const std::vector<Expr>& index)>;

  explicit ReadRewriter(Replace replace) : replace_(std::move(replace)) {}
  Expr run(const Expr& expr);

private:
  Expr rewrite(const Expr& expr);

  Replace replace_;
  std::unordered_map<const ExprNode*, Expr> done_;
  std::vector<Expr> kept_;  // keeps the nodes of done_'s keys alive
};

}  // namespace tensormill::te
