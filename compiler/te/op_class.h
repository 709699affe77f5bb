/// Which operands an operator takes, as its row in expr_ops.def says: what construction, parsing and
/// execution go by. Thread-safety: pure functions.
#pragma once

#include "compiler/te/expr.h"

namespace tensormill::te {

enum class OpClass : uint8_t {
  kConstant,    ///< constants and variables
  kArithmetic,  ///< args of one numeric type, the same result
  kInteger,     ///< args of one integer type, the same result
  kWords,       ///< args of i32, the same result: four bytes each
  kBitwise,     ///< args of one integer type or bool, the same result
  kCompare,     ///< args of one type, bool result
  kFloat,       ///< args of one float type, the same result; exact or correctly rounded
  kVectorMath,  ///< as kFloat; legalized to arithmetic before code generation
  kSelect,
  kTyped,       ///< more is given than args, a type or a table: cast, reinterpret, ramp, broadcast, lookup
  kLaneReduce,  ///< vector to scalar
  kMemory,      ///< load, read, reduce
  kCheck,       ///< check_index
};

/// By ExprOp.
inline constexpr OpClass kOpClasses[] = {
#define TM_EXPR_OP(enumerator, name, arity, group, meaning) OpClass::group,
#include "compiler/te/expr_ops.def"
#undef TM_EXPR_OP
};
constexpr OpClass op_class(ExprOp op) { return kOpClasses[static_cast<size_t>(op)]; }

/// The lane reduction by an operator: kAdd, kMul, kMin or kMax.
constexpr ExprOp lane_reduction_by(ExprOp op) {
  switch (op) {
    case ExprOp::kMul:
      return ExprOp::kLaneReduceMul;
    case ExprOp::kMin:
      return ExprOp::kLaneReduceMin;
    case ExprOp::kMax:
      return ExprOp::kLaneReduceMax;
    default:
      return ExprOp::kLaneReduceAdd;
  }
}

/// The operator that joins two halves of a lane reduction: the inverse.
constexpr ExprOp lane_reduce_step(ExprOp op) {
  switch (op) {
    case ExprOp::kLaneReduceMul:
      return ExprOp::kMul;
    case ExprOp::kLaneReduceMin:
      return ExprOp::kMin;
    case ExprOp::kLaneReduceMax:
      return ExprOp::kMax;
    default:
      return ExprOp::kAdd;
  }
}

}  // namespace tensormill::te
