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

/// `value`, which is `body` with `index` in place of `axes`. An element that is the same at every place is
/// still one of a place that has to be there: what the index checks along axes that the body does not mention
/// is checked beside the value.
Expr with_checks_of(const Expr& value, const Expr& body, const std::vector<Var>& axes,
                    const std::vector<Expr>& index);

}  // namespace tensormill::te
