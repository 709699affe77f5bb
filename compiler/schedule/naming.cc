#include "compiler/schedule/naming.h"

#include <unordered_map>

#include "compiler/te/rewrite_args.h"

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;
using te::Stmt;

namespace {

class Naming {
public:
  Stmt wrap(std::vector<Expr> values, const std::function<Stmt(const std::vector<Expr>&)>& make) {
    for (const Expr& value : values) count(value);
    for (Expr& value : values) value = rewrite(value);
    Stmt result = make(values);
    for (size_t i = lets_.size(); i-- > 0;) result = te::make_let(lets_[i].first, lets_[i].second, result);
    return result;
  }

private:
  static bool worth_a_name(const Expr& expr) {
    if (expr->args.empty() || expr->op == ExprOp::kLoad || expr->type.dtype == DType::kBool) return false;
    if (expr->op == ExprOp::kBroadcast || expr->op == ExprOp::kRamp) return false;
    return expr->type.dtype != DType::kInt64 || expr->op == ExprOp::kCheckIndex || expr->op == ExprOp::kCast;
  }
  void count(const Expr& expr) {
    if (++uses_[expr.get()] > 1) return;
    for (const Expr& arg : expr->args) count(arg);
  }
  Expr rewrite(const Expr& expr) {
    if (expr->args.empty()) return expr;
    if (const auto done = done_.find(expr.get()); done != done_.end()) return done->second;
    Expr result = te::rewrite_args(expr, [this](const Expr& part) { return rewrite(part); }).of(expr);
    if (uses_[expr.get()] > 1 && worth_a_name(result)) {
      const te::Var name = te::make_var("t", result->type.dtype, result->type.lanes);
      lets_.emplace_back(name, result);
      result = Expr(name);
    }
    done_.emplace(expr.get(), result);
    return result;
  }

  std::unordered_map<const te::ExprNode*, int> uses_;
  std::unordered_map<const te::ExprNode*, Expr> done_;
  std::vector<std::pair<te::Var, Expr>> lets_;
};

}  // namespace

Stmt name_shared(std::vector<Expr> values, const std::function<Stmt(const std::vector<Expr>&)>& make) {
  return Naming().wrap(std::move(values), make);
}

}  // namespace tensormill::schedule
