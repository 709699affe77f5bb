#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/te/interpret.h"
#include "compiler/te/op_class.h"
#include "compiler/te/text.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::te {
namespace {

using HostTensor = tensormill::Tensor;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

struct IntegerRow {
  ExprOp op;
  DType dtype;
  int64_t a, b, result;
};

TEST(EvaluateOp, Integers) {
  const IntegerRow rows[] = {
      {ExprOp::kAdd, DType::kInt8, 127, 1, -128},
      {ExprOp::kAdd, DType::kUInt8, 255, 1, 0},
      {ExprOp::kAdd, DType::kInt64, kMax, 1, kMin},
      {ExprOp::kSub, DType::kUInt32, 0, 1, 4294967295},
      {ExprOp::kSub, DType::kInt64, kMin, 1, kMax},
      {ExprOp::kMul, DType::kInt16, 256, 256, 0},
      {ExprOp::kMul, DType::kInt64, kMin, -1, kMin},
      {ExprOp::kDiv, DType::kInt32, -7, 2, -3},
      {ExprOp::kDiv, DType::kInt32, 7, 0, 0},
      {ExprOp::kDiv, DType::kInt8, -128, -1, -128},
      {ExprOp::kDiv, DType::kInt64, kMin, -1, kMin},
      {ExprOp::kDiv, DType::kUInt64, -1, 2, kMax},
      {ExprOp::kMod, DType::kInt32, -7, 2, -1},
      {ExprOp::kMod, DType::kInt32, -7, 0, 0},
      {ExprOp::kMod, DType::kInt64, kMin, -1, 0},
      {ExprOp::kFloorDiv, DType::kInt64, -7, 2, -4},
      {ExprOp::kFloorDiv, DType::kInt64, 7, -2, -4},
      {ExprOp::kFloorDiv, DType::kInt64, -8, -2, 4},
      {ExprOp::kFloorDiv, DType::kInt64, 3, 0, 0},
      {ExprOp::kFloorDiv, DType::kInt32, std::numeric_limits<int32_t>::min(), -1,
       std::numeric_limits<int32_t>::min()},
      {ExprOp::kFloorMod, DType::kInt64, -7, 4, 1},
      {ExprOp::kFloorMod, DType::kInt64, 7, -4, -1},
      {ExprOp::kFloorMod, DType::kInt64, kMin, -1, 0},
      {ExprOp::kFloorMod, DType::kInt64, -7, 0, 0},
      {ExprOp::kMin, DType::kUInt64, -1, 1, 1},
      {ExprOp::kMax, DType::kUInt64, -1, 1, -1},
      {ExprOp::kMin, DType::kInt64, -1, 1, -1},
      {ExprOp::kShl, DType::kInt32, 1, 31, std::numeric_limits<int32_t>::min()},
      {ExprOp::kShl, DType::kInt32, 1, 32, 0},
      {ExprOp::kShl, DType::kInt32, 1, -1, 0},
      {ExprOp::kShl, DType::kInt64, 1, 64, 0},
      {ExprOp::kShr, DType::kInt8, -128, 7, -1},
      {ExprOp::kShr, DType::kInt8, -128, 8, -1},
      {ExprOp::kShr, DType::kInt8, 127, -1, 0},
      {ExprOp::kShr, DType::kUInt8, 128, 7, 1},
      {ExprOp::kShr, DType::kUInt64, -1, 63, 1},
      {ExprOp::kShr, DType::kUInt64, -1, 64, 0},
      {ExprOp::kBitXor, DType::kBool, 1, 1, 0},
      {ExprOp::kLt, DType::kUInt64, -1, 0, 0},
      {ExprOp::kGt, DType::kUInt64, -1, 0, 1},
      {ExprOp::kGe, DType::kInt64, -1, 0, 0},
      {ExprOp::kNeg, DType::kInt8, -128, 0, -128},
      {ExprOp::kNeg, DType::kUInt8, 1, 0, 255},
      {ExprOp::kAbs, DType::kInt16, -32768, 0, -32768},
      {ExprOp::kAbs, DType::kUInt16, 65535, 0, 65535},
      {ExprOp::kNot, DType::kBool, 1, 0, 0},
      {ExprOp::kNot, DType::kUInt8, 1, 0, 254},
  };
  for (const IntegerRow& row : rows) {
    const Scalar args[] = {{row.a, 0}, {row.b, 0}};
    EXPECT_EQ(evaluate_op(row.op, row.dtype, row.dtype, args, 2).i, row.result)
        << expr_op_name(row.op) << " " << dtype_name(row.dtype) << " " << row.a << " " << row.b;
  }
}

struct FloatRow {
  ExprOp op;
  DType dtype;
  double a, b, result;
};

bool same(double a, double b) {
  return (a != a && b != b) || std::bit_cast<int64_t>(a) == std::bit_cast<int64_t>(b);
}

TEST(EvaluateOp, Floats) {
  const FloatRow rows[] = {
      {ExprOp::kAdd, DType::kFloat32, 16777216, 1, 16777216},
      {ExprOp::kAdd, DType::kFloat64, 16777216, 1, 16777217},
      {ExprOp::kAdd, DType::kFloat16, 2048, 1, 2048},
      {ExprOp::kMul, DType::kFloat16, 256, 256, kInf},
      {ExprOp::kDiv, DType::kFloat32, 1, 0, kInf},
      {ExprOp::kDiv, DType::kFloat32, 0, 0, kNan},
      {ExprOp::kMul, DType::kFloat32, 0x1p-100, 0x1p-49, 0x1p-149},
      {ExprOp::kMod, DType::kFloat32, -5.5, 2, -1.5},
      {ExprOp::kMod, DType::kFloat32, 5.5, 0, kNan},
      {ExprOp::kMin, DType::kFloat32, kNan, 1, kNan},
      {ExprOp::kMax, DType::kFloat32, 1, kNan, kNan},
      {ExprOp::kMin, DType::kFloat32, 0.0, -0.0, -0.0},
      {ExprOp::kMax, DType::kFloat32, -0.0, 0.0, 0.0},
      {ExprOp::kMax, DType::kFloat64, -0.0, -0.0, -0.0},
      {ExprOp::kNeg, DType::kFloat32, 0.0, 0, -0.0},
      {ExprOp::kAbs, DType::kFloat64, -0.0, 0, 0.0},
      {ExprOp::kSqrt, DType::kFloat32, 2, 0, static_cast<double>(std::sqrt(2.0f))},
      {ExprOp::kSqrt, DType::kFloat32, -1, 0, kNan},
      {ExprOp::kFloor, DType::kFloat32, -0.5, 0, -1},
      {ExprOp::kCeil, DType::kFloat32, -0.5, 0, -0.0},
      {ExprOp::kTrunc, DType::kFloat32, -1.5, 0, -1},
      {ExprOp::kRound, DType::kFloat32, 2.5, 0, 2},
      {ExprOp::kRound, DType::kFloat32, -0.5, 0, -0.0},
      {ExprOp::kRound, DType::kFloat32, 3.5, 0, 4},
  };
  for (const FloatRow& row : rows) {
    const Scalar args[] = {{0, row.a}, {0, row.b}};
    const double result = evaluate_op(row.op, row.dtype, row.dtype, args, 2).f;
    EXPECT_TRUE(same(result, row.result))
        << expr_op_name(row.op) << " " << row.a << " " << row.b << " = " << result;
  }
  const Scalar nan_pair[] = {{0, kNan}, {0, kNan}};
  for (const ExprOp op : {ExprOp::kEq, ExprOp::kLt, ExprOp::kLe, ExprOp::kGt, ExprOp::kGe}) {
    EXPECT_EQ(evaluate_op(op, DType::kFloat32, DType::kBool, nan_pair, 2).i, 0);
  }
  EXPECT_EQ(evaluate_op(ExprOp::kNe, DType::kFloat32, DType::kBool, nan_pair, 2).i, 1);
}

TEST(EvaluateOp, FmaRoundsOnce) {
  const float a = 1 + 0x1p-12f;
  const Scalar args[] = {{0, a}, {0, a}, {0, -1}};
  const double fused = evaluate_op(ExprOp::kFma, DType::kFloat32, DType::kFloat32, args, 3).f;
  EXPECT_EQ(fused, 0x1p-11 + 0x1p-24);
  EXPECT_NE(fused, static_cast<double>(a * a - 1.0f));
}

struct CastRow {
  DType from, to;
  Scalar value, result;
};

TEST(EvaluateOp, Casts) {
  const CastRow rows[] = {
      {DType::kFloat32, DType::kInt8, {0, 300}, {127, 0}},
      {DType::kFloat32, DType::kInt8, {0, -1e9}, {-128, 0}},
      {DType::kFloat32, DType::kUInt8, {0, -1}, {0, 0}},
      {DType::kFloat32, DType::kInt64, {0, kInf}, {kMax, 0}},
      {DType::kFloat64, DType::kInt64, {0, -0x1p63}, {kMin, 0}},
      {DType::kFloat64, DType::kUInt64, {0, 0x1p63}, {kMin, 0}},
      {DType::kFloat64, DType::kUInt64, {0, kInf}, {-1, 0}},
      {DType::kFloat32, DType::kInt32, {0, kNan}, {0, 0}},
      {DType::kFloat32, DType::kInt32, {0, -1.9}, {-1, 0}},
      {DType::kFloat32, DType::kBool, {0, kNan}, {1, 0}},
      {DType::kFloat32, DType::kBool, {0, -0.0}, {0, 0}},
      {DType::kInt32, DType::kBool, {256, 0}, {1, 0}},
      {DType::kInt64, DType::kInt8, {300, 0}, {44, 0}},
      {DType::kInt8, DType::kUInt32, {-1, 0}, {4294967295, 0}},
      {DType::kUInt64, DType::kFloat32, {-1, 0}, {0, 0x1p64}},
      {DType::kInt64, DType::kFloat32, {16777217, 0}, {0, 16777216}},
      {DType::kFloat64, DType::kFloat32, {0, 1 + 0x1p-24}, {0, 1}},
      {DType::kFloat32, DType::kFloat16, {0, 1 + 0x1p-11}, {0, 1}},
      {DType::kFloat32, DType::kFloat16, {0, 65519}, {0, 65504}},
      {DType::kFloat32, DType::kBFloat16, {0, 1 + 0x3p-8}, {0, 1 + 0x1p-6}},
  };
  for (const CastRow& row : rows) {
    const Scalar result = evaluate_op(ExprOp::kCast, row.from, row.to, &row.value, 1);
    EXPECT_TRUE(is_float(row.to) ? same(result.f, row.result.f) : result.i == row.result.i)
        << dtype_name(row.from) << " " << row.value.i << "/" << row.value.f << " to " << dtype_name(row.to)
        << ": " << result.i << "/" << result.f;
  }
  const Scalar minus_zero{0, -0.0};
  EXPECT_EQ(evaluate_op(ExprOp::kReinterpret, DType::kFloat32, DType::kInt32, &minus_zero, 1).i,
            std::numeric_limits<int32_t>::min());
}

TEST(Fold, ConstantsAndOnlyThose) {
  EXPECT_EQ(print(Expr(7) * 3 - 1), "20");
  EXPECT_EQ(print(broadcast(Expr(7), 4) + ramp(Expr(0), 1, 4)), "(7:i64x4 + ramp.4(0, 1))");
  EXPECT_EQ(print(broadcast(Expr(7), 4) + 1), "8:i64x4");
  const Expr quarter = float_imm(DType::kFloat32, 0.25, 4);
  EXPECT_EQ(print(make(ExprOp::kLaneReduceAdd, {quarter})), "1:f32");
  EXPECT_EQ(print(make(ExprOp::kExp, {float_imm(DType::kFloat32, 0)})), "exp(0:f32)");
  EXPECT_EQ(print(check_index(Expr(3), Expr(4))), "3");
  EXPECT_EQ(print(check_index(Expr(4), Expr(4))), "check_index(4, 4)");
  EXPECT_EQ(print(cast(DType::kInt8, float_imm(DType::kFloat32, 1000))), "127:i8");
}

TEST(Construction, ChecksTypes) {
  const Expr real = float_imm(DType::kFloat32, 1), index(1);
  EXPECT_THROW(real + index, InternalError);
  EXPECT_THROW(make(ExprOp::kFloorDiv, {real, real}), InternalError);
  EXPECT_THROW(make(ExprOp::kSqrt, {index}), InternalError);
  EXPECT_THROW(make(ExprOp::kAdd, {index}), InternalError);
  EXPECT_THROW(select(index, real, real), InternalError);
  EXPECT_THROW(reinterpret(DType::kInt64, real), InternalError);
  EXPECT_THROW(make(ExprOp::kLaneReduceAdd, {broadcast(real, 6)}), InternalError);
  EXPECT_THROW(broadcast(real, 4) + broadcast(real, 8), InternalError);
  const Buffer buffer = make_buffer("b", DType::kFloat32, {Expr(4)}, Scope::kParameter);
  EXPECT_THROW(load(buffer, {}), InternalError);
  EXPECT_THROW(load(buffer, {real}), InternalError);
  EXPECT_THROW(make_store(buffer, {Expr(0)}, index), InternalError);
}

/// Values of every kind of trouble, and some ordinary ones.
Scalar hostile(DType dtype, uint64_t choice, std::mt19937_64& random) {
  if (is_float(dtype)) {
    const double values[] = {0.0,   -0.0, 1,     -1,   0.5,   2.5,   kInf,
                             -kInf, kNan, 1e-42, 3e38, -7.25, 1e300, 1e-310};
    const double value =
        choice < std::size(values) ? values[choice] : static_cast<double>(random() % 2000) / 64 - 15;
    return {0, round_to(dtype, value)};
  }
  const int64_t values[] = {0, 1, -1, kMin, kMax, 127, -128, 31, 32, 63, 64, 255};
  const int64_t value = choice < std::size(values) ? values[choice] : static_cast<int64_t>(random());
  return {wrap_to(dtype, value), 0};
}

/// The interpreter's quick paths are the same functions as evaluate_op: all operators over all their types.
TEST(EvaluateOp, InterpreterAgrees) {
  std::mt19937_64 random(7);
  constexpr int64_t kCount = 256;
  int compared = 0;
  for (size_t index = 0; index <= static_cast<size_t>(ExprOp::kCheckIndex); ++index) {
    const ExprOp op = static_cast<ExprOp>(index);
    const OpClass group = op_class(op);
    const bool plain = group == OpClass::kArithmetic || group == OpClass::kInteger ||
                       group == OpClass::kWords || group == OpClass::kBitwise || group == OpClass::kCompare ||
                       group == OpClass::kFloat;
    if (!plain) continue;
    for (const DTypeInfo& info : all_dtypes()) {
      if (is_narrow(info.dtype)) continue;  // no type of expressions
      const bool fits = group == OpClass::kFloat     ? info.is_float
                        : group == OpClass::kInteger ? is_integer(info.dtype)
                        : group == OpClass::kWords   ? info.dtype == DType::kInt32
                        : group == OpClass::kBitwise ? !info.is_float
                                                     : info.dtype != DType::kBool;
      if (!fits) continue;
      const size_t arity = static_cast<size_t>(expr_op_arity(op));
      const DType result = group == OpClass::kCompare ? DType::kBool : info.dtype;
      Function function;
      function.name = "f";
      std::vector<HostTensor> arguments;
      std::vector<Expr> args;
      const Expr lanes = ramp(Expr(0), 1, static_cast<int>(kCount));
      for (size_t i = 0; i < arity; ++i) {
        const Buffer buffer = make_buffer("x", info.dtype, {Expr(kCount)}, Scope::kParameter);
        function.parameters.push_back({buffer, false});
        args.push_back(load(buffer, {lanes}));
        arguments.emplace_back(info.dtype, Shape{kCount});
      }
      std::vector<std::vector<Scalar>> values(kCount, std::vector<Scalar>(arity));
      for (int64_t at = 0; at < kCount; ++at) {
        for (size_t i = 0; i < arity; ++i) {
          const Scalar value = hostile(info.dtype, random() % 20, random);
          values[static_cast<size_t>(at)][i] = value;
          if (info.is_float) arguments[i].set_element(at, value.f);
          if (!info.is_float) arguments[i].set_element_int(at, value.i);
        }
      }
      function.parameters.push_back({make_buffer("y", result, {Expr(kCount)}, Scope::kParameter), true});
      arguments.emplace_back(result, Shape{kCount});
      function.body = make_store(function.parameters.back().buffer, {lanes}, make(op, args));
      interpret(function, arguments);
      for (int64_t at = 0; at < kCount; ++at) {
        const Scalar expected =
            evaluate_op(op, info.dtype, result, values[static_cast<size_t>(at)].data(), arity);
        const bool agree = is_float(result) ? same(arguments.back().element_as_double(at), expected.f)
                                            : arguments.back().element_as_int(at) == expected.i;
        ASSERT_TRUE(agree) << expr_op_name(op) << " " << info.name << " at " << at;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 50000);
}

}  // namespace
}  // namespace tensormill::te
