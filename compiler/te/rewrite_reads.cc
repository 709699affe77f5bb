#include "compiler/te/rewrite_reads.h"

#include "compiler/te/rewrite_args.h"

namespace tensormill::te {

Expr ReadRewriter::run(const Expr& expr) {
  kept_.push_back(expr);
  return rewrite(expr);
}

Expr ReadRewriter::rewrite(const Expr& expr) {
  if (expr->args.empty() && expr->op != ExprOp::kRead) return expr;
  if (const auto done = done_.find(expr.get()); done != done_.end()) return done->second;
  RewrittenArgs rewritten = rewrite_args(expr, [this](const Expr& part) { return rewrite(part); });
  const Expr result =
      expr->op == ExprOp::kRead ? replace_(expr, rewritten.args) : std::move(rewritten).of(expr);
  done_.emplace(expr.get(), result);
  return result;
}

}  // namespace tensormill::te
