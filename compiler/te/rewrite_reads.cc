#include "compiler/te/rewrite_reads.h"

#include <unordered_set>

#include "compiler/te/rewrite_args.h"

namespace tensormill::te {

namespace {

using Seen = std::unordered_set<const ExprNode*>;

/// The outermost checks: what they check is computed with them.
void collect_checks(const Expr& expr, Seen& seen, std::vector<Expr>& checks) {
  if (!seen.insert(expr.get()).second) return;
  if (expr->op == ExprOp::kCheckIndex) return checks.push_back(expr);
  for (const Expr& arg : expr->args) collect_checks(arg, seen, checks);
  if (expr->mask) collect_checks(expr->mask, seen, checks);
}

/// Takes the variables that it meets out of `open`.
void strike_out(const Expr& expr, Seen& seen, std::unordered_set<const VarNode*>& open) {
  if (open.empty() || !seen.insert(expr.get()).second) return;
  if (expr->op == ExprOp::kVar) open.erase(expr->var.get());
  for (const Expr& arg : expr->args) strike_out(arg, seen, open);
  if (expr->mask) strike_out(expr->mask, seen, open);
}

}  // namespace

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

Expr with_checks_of(const Expr& value, const Expr& body, const std::vector<Var>& axes,
                    const std::vector<Expr>& index) {
  Seen in_index, in_body;
  std::unordered_set<const VarNode*> unused;
  std::vector<std::vector<Expr>> checks(index.size());
  for (size_t i = 0; i < index.size(); ++i) {
    collect_checks(index[i], in_index, checks[i]);
    if (!checks[i].empty()) unused.insert(axes[i].get());
  }
  strike_out(body, in_body, unused);
  Expr holds;
  for (size_t i = 0; i < index.size(); ++i) {
    if (unused.count(axes[i].get()) == 0) continue;
    for (const Expr& check : checks[i]) {
      const Expr own = check >= Expr(0);
      holds = holds ? logical_and(holds, own) : own;
    }
  }
  return holds ? select(holds, value, value) : value;
}

}  // namespace tensormill::te
