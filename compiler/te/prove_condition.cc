// Conditions as bounds of differences: what the search of prover.cc is asked for.
#include "compiler/te/op_class.h"
#include "compiler/te/prover.h"
#include "compiler/te/simplifier.h"

namespace tensormill::te {

bool Prover::compares(ExprOp op, const Expr& a, const Expr& b) {
  if (a->type != Type{}) return false;
  const Linear left = to_linear(a), right = to_linear(b);
  if (!is_exact(left) || !is_exact(right)) return op == ExprOp::kEq && equal(a, b);
  const auto less = [this](const Linear& x, const Linear& y, int64_t margin) {
    Linear difference = x;
    difference.add(y, -1);
    difference.add_constant(margin);
    met_remainder_ = met_part_ = false;
    const auto search = [this, &difference](bool remainders, bool parts) {
      remainders_ = remainders;
      parts_ = parts;
      steps_ = kMaxSteps;
      const bool proven = nonpositive(difference);
      remainders_ = parts_ = false;
      return proven;
    };
    if (search(false, false)) return true;
    // These rules open many more ways, most of which lead nowhere: searches of their own.
    if (met_remainder_ && search(true, false)) return true;
    return met_part_ && search(met_remainder_, true);
  };
  switch (op) {
    case ExprOp::kLt:
      return less(left, right, 1);
    case ExprOp::kLe:
      return less(left, right, 0);
    case ExprOp::kGt:
      return less(right, left, 1);
    case ExprOp::kGe:
      return less(right, left, 0);
    case ExprOp::kEq:
      return less(left, right, 0) && less(right, left, 0);
    default:
      return less(left, right, 1) || less(right, left, 1);
  }
}

bool Prover::holds(const Expr& condition, bool negated) {
  if (condition->type != (Type{DType::kBool, 1})) return false;
  if (condition->op == ExprOp::kIntImm) return (condition->int_value != 0) != negated;
  if (op_class(condition->op) == OpClass::kCompare) {
    return compares(negated ? opposite(condition->op) : condition->op, condition->args[0],
                    condition->args[1]);
  }
  switch (condition->op) {
    case ExprOp::kNot:
      return holds(condition->args[0], !negated);
    case ExprOp::kBitAnd:
    case ExprOp::kBitOr: {
      const bool both = (condition->op == ExprOp::kBitAnd) != negated;
      const bool first = holds(condition->args[0], negated);
      return first == both ? holds(condition->args[1], negated) : first;
    }
    default:
      return false;
  }
}

}  // namespace tensormill::te
