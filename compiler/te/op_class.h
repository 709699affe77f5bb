/// Which operands an operator takes: what construction, parsing and execution need to know of it beyond its
/// row in expr_ops.def. Thread-safety: pure functions.
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

constexpr OpClass op_class(ExprOp op) {
  switch (op) {
    case ExprOp::kIntImm:
    case ExprOp::kFloatImm:
    case ExprOp::kVar:
      return OpClass::kConstant;
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod:
    case ExprOp::kShl:
    case ExprOp::kShr:
      return OpClass::kInteger;
    case ExprOp::kDot4:
      return OpClass::kWords;
    case ExprOp::kBitAnd:
    case ExprOp::kBitOr:
    case ExprOp::kBitXor:
    case ExprOp::kNot:
      return OpClass::kBitwise;
    case ExprOp::kEq:
    case ExprOp::kNe:
    case ExprOp::kLt:
    case ExprOp::kLe:
    case ExprOp::kGt:
    case ExprOp::kGe:
      return OpClass::kCompare;
    case ExprOp::kFma:
    case ExprOp::kScale:
    case ExprOp::kReciprocal:
    case ExprOp::kSqrt:
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kTrunc:
    case ExprOp::kRound:
      return OpClass::kFloat;
    case ExprOp::kExp:
    case ExprOp::kLog:
    case ExprOp::kTanh:
    case ExprOp::kErf:
    case ExprOp::kErfc:
    case ExprOp::kSigmoid:
    case ExprOp::kSin:
    case ExprOp::kCos:
    case ExprOp::kTan:
    case ExprOp::kAsin:
    case ExprOp::kAcos:
    case ExprOp::kAtan:
    case ExprOp::kSinh:
    case ExprOp::kCosh:
    case ExprOp::kPow:
      return OpClass::kVectorMath;
    case ExprOp::kSelect:
      return OpClass::kSelect;
    case ExprOp::kCast:
    case ExprOp::kReinterpret:
    case ExprOp::kLookup:
    case ExprOp::kRamp:
    case ExprOp::kBroadcast:
      return OpClass::kTyped;
    case ExprOp::kLaneReduceAdd:
    case ExprOp::kLaneReduceMul:
    case ExprOp::kLaneReduceMin:
    case ExprOp::kLaneReduceMax:
      return OpClass::kLaneReduce;
    case ExprOp::kLoad:
    case ExprOp::kRead:
    case ExprOp::kReduce:
      return OpClass::kMemory;
    case ExprOp::kCheckIndex:
      return OpClass::kCheck;
    default:
      return OpClass::kArithmetic;
  }
}

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
