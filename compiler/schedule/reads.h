/// Expressions with their reads replaced. Thread-safety: an object belongs to one thread.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "compiler/te/expr.h"

namespace tensormill::schedule {

/// Replaces every read, from the leaves up. What expressions share stays shared, in one and from one to the
/// next: a node that was rewritten is not again.
class ReadRewriter {
public:
  /// What stands for the read `read`, whose index has been rewritten to `index`.
  using Replace = std::function<te::Expr(const te::Expr& read, const std::vector<te::Expr>& index)>;

  explicit ReadRewriter(Replace replace) : replace_(std::move(replace)) {}
  te::Expr run(const te::Expr& expr);

private:
  te::Expr rewrite(const te::Expr& expr);

  Replace replace_;
  std::unordered_map<const te::ExprNode*, te::Expr> done_;
  std::vector<te::Expr> kept_;  // keeps the nodes of done_'s keys alive
};

}  // namespace tensormill::schedule
