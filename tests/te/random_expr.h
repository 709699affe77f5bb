// Random index expressions and their plain evaluation, for property tests.
#pragma once

#include <map>
#include <random>
#include <vector>

#include "compiler/te/expr.h"

namespace tensormill::te::testing {

using Environment = std::map<const VarNode*, int64_t>;

/// Evaluates lane `lane` of an integer or bool expression without loads, straight from evaluate_op.
inline int64_t evaluate_at(const Expr& expr, const Environment& environment, int lane = 0) {
  switch (expr->op) {
    case ExprOp::kIntImm:
      return expr->int_value;
    case ExprOp::kVar:
      return environment.at(expr->var.get());
    case ExprOp::kBroadcast:
      return evaluate_at(expr->args[0], environment);
    case ExprOp::kRamp:
      return evaluate_at(expr->args[0], environment) + evaluate_at(expr->args[1], environment) * lane;
    default:
      break;
  }
  std::vector<Scalar> values;
  for (const Expr& arg : expr->args) values.push_back({evaluate_at(arg, environment, lane), 0});
  const DType dtype = expr->op == ExprOp::kSelect ? expr->type.dtype : expr->args[0]->type.dtype;
  return evaluate_op(expr->op, dtype, expr->type.dtype, values.data(), values.size()).i;
}

/// Seeded generator of i64 and bool expressions over given leaves.
class RandomExpr {
public:
  RandomExpr(uint32_t seed, std::vector<Expr> leaves) : random_(seed), leaves_(std::move(leaves)) {}

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }

  Expr index(int depth) {
    if (depth == 0 || below(6) == 0) {
      return below(3) == 0 ? Expr(below(24) - 8)
                           : leaves_[static_cast<size_t>(below(static_cast<int64_t>(leaves_.size())))];
    }
    const Expr a = index(depth - 1);
    switch (below(11)) {
      case 0:
      case 1:
        return a + index(depth - 1);
      case 2:
        return a - index(depth - 1);
      case 3:
        return a * Expr(below(9) - 3);
      case 4:
      case 5:
        return floordiv(a, Expr(below(12) + 1));
      case 6:
      case 7:
        return floormod(a, Expr(below(12) + 1));
      case 8:
        return min(a, index(depth - 1));
      case 9:
        return max(a, index(depth - 1));
      default:
        return below(2) == 0 ? select(condition(depth - 1), a, index(depth - 1)) : a * index(depth - 1);
    }
  }

  Expr condition(int depth) {
    const ExprOp ops[] = {ExprOp::kLt, ExprOp::kLe, ExprOp::kGt, ExprOp::kGe, ExprOp::kEq, ExprOp::kNe};
    switch (depth > 0 ? below(6) : 5) {
      case 0:
        return logical_and(condition(depth - 1), condition(depth - 1));
      case 1:
        return logical_or(condition(depth - 1), condition(depth - 1));
      case 2:
        return logical_not(condition(depth - 1));
      default:
        return make(ops[below(6)], {index(std::max(0, depth - 1)), index(std::max(0, depth - 1))});
    }
  }

private:
  std::mt19937 random_;
  std::vector<Expr> leaves_;
};

}  // namespace tensormill::te::testing
