#include "compiler/te/rewrite_reads.h"

namespace tensormill::te {

Expr ReadRewriter::run(const Expr& expr) {
  kept_.push_back(expr);
  return rewrite(expr);
}

Expr ReadRewriter::rewrite(const Expr& expr) {
  if (expr->args.empty() && expr->op != ExprOp::kRead) return expr;
  if (const auto done = done_.find(expr.get()); done != done_.end()) return done->second;
  std::vector<Expr> args;
  bool changed = false;
  for (const Expr& arg : expr->args) {
    args.push_back(rewrite(arg));
    changed = changed || !args.back().same_as(arg);
  }
  Expr result = expr;
  if (expr->op == ExprOp::kRead) {
    result = replace_(expr, args);
  } else if (changed) {
    result = with_args(expr, std::move(args), expr->mask);
  }
  done_.emplace(expr.get(), result);
  return result;
}

}  // namespace tensormill::te
