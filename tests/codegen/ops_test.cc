#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "compiler/te/op_class.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "tests/codegen/support.h"

namespace tensormill::codegen_test {
namespace {

using te::Expr;
using te::ExprOp;
using te::OpClass;

/// The types of expressions: all but the narrow ones.
std::vector<DTypeInfo> kernel_dtypes() {
  std::vector<DTypeInfo> rows;
  for (const DTypeInfo& row : all_dtypes()) {
    if (!is_narrow(row.dtype)) rows.push_back(row);
  }
  return rows;
}

constexpr int64_t kCount = 1680;  // divisible by every lane count below

uint64_t bits_of(const Tensor& tensor, int64_t index) {
  uint64_t bits = 0;
  const size_t size = dtype_bytes(tensor.dtype());
  std::memcpy(&bits, static_cast<const char*>(tensor.data()) + static_cast<size_t>(index) * size, size);
  return bits;
}

void set_bits(Tensor& tensor, int64_t index, uint64_t bits) {
  const size_t size = dtype_bytes(tensor.dtype());
  std::memcpy(static_cast<char*>(tensor.data()) + static_cast<size_t>(index) * size, &bits, size);
}

te::Scalar scalar_of(const Tensor& tensor, int64_t index) {
  if (is_float(tensor.dtype())) return {0, tensor.element_as_double(index)};
  return {te::wrap_to(tensor.dtype(), static_cast<int64_t>(bits_of(tensor, index))), 0};
}

void set_scalar(Tensor& tensor, int64_t index, const te::Scalar& scalar) {
  if (is_float(tensor.dtype())) {
    tensor.set_element(index, scalar.f);
  } else {
    set_bits(tensor, index, static_cast<uint64_t>(scalar.i));
  }
}

std::vector<double> float_edges() {
  const double inf = std::numeric_limits<double>::infinity();
  return {0.0,
          -0.0,
          1.0,
          -1.0,
          0.5,
          -0.5,
          1.5,
          2.5,
          -2.5,
          3.0,
          127.5,
          -128.5,
          255.4,
          256.0,
          32767.6,
          65504.0,
          65520.0,
          -65536.0,
          0x1p31,
          -0x1p31,
          0x1p32,
          0x1p63,
          -0x1p63,
          0x1p64,
          1e10,
          -1e10,
          1e-5,
          0x1p-14,
          0x1p-24,
          0x1p-25,
          0x1.8p-25,
          0x1p-126,
          0x1p-149,
          0x1p-1022,
          0x1p-1074,
          0x1.8p1000,
          0x1.fffffep127,
          0x1p127,
          0x1.01p0,
          0x1.018p0,
          inf,
          -inf,
          std::nan(""),
          8388607.5,
          4503599627370495.5,
          -0.3,
          0.7,
          6.0};
}

/// Edge values paired with each other by position in differently permuted copies, then random bits.
Tensor operand(DType dtype, uint64_t seed) {
  Tensor tensor(dtype, {kCount});
  std::mt19937_64 random(seed);
  const std::vector<double> edges = float_edges();
  const std::vector<int64_t> integers = {0,
                                         1,
                                         -1,
                                         2,
                                         -2,
                                         3,
                                         7,
                                         8,
                                         -8,
                                         31,
                                         32,
                                         63,
                                         64,
                                         5,
                                         -5,
                                         100,
                                         127,
                                         -128,
                                         255,
                                         13,
                                         32767,
                                         -32768,
                                         std::numeric_limits<int32_t>::min(),
                                         std::numeric_limits<int32_t>::max(),
                                         std::numeric_limits<int64_t>::min(),
                                         std::numeric_limits<int64_t>::max()};
  for (int64_t i = 0; i < kCount; ++i) {
    const uint64_t draw = random();
    if (dtype == DType::kBool) {
      set_bits(tensor, i, draw & 1);
    } else if (draw % 4 == 0) {
      set_bits(tensor, i, random());
    } else if (is_float(dtype)) {
      tensor.set_element(i, draw % 4 == 1 ? std::ldexp(static_cast<double>(random() % 2001) - 1000,
                                                       static_cast<int>(random() % 20) - 10)
                                          : edges[random() % edges.size()]);
    } else {
      set_bits(tensor, i, static_cast<uint64_t>(integers[random() % integers.size()]));
    }
  }
  return tensor;
}

bool applies(ExprOp op, DType dtype) {
  switch (te::op_class(op)) {
    case OpClass::kArithmetic:
      return dtype != DType::kBool;
    case OpClass::kInteger:
      return is_integer(dtype);
    case OpClass::kWords:
      return dtype == DType::kInt32;
    case OpClass::kBitwise:
      return !is_float(dtype);
    case OpClass::kCompare:
      return true;
    case OpClass::kFloat:
      // Of other operands than those of scaling_test.cc these two say nothing.
      return is_float(dtype) && op != ExprOp::kScale && op != ExprOp::kReciprocal;
    default:
      return false;
  }
}

/// `body(index)` for index = 0, lanes, 2*lanes …
te::Stmt loop_over(int lanes, const std::function<te::Stmt(const Expr&)>& body) {
  const te::Var i = te::make_var("i");
  const Expr base = Expr(i) * Expr(static_cast<int64_t>(lanes));
  return te::make_for(i, Expr(0), Expr(kCount / lanes), te::ForKind::kSerial,
                      body(lanes == 1 ? base : te::ramp(base, Expr(1), lanes)));
}

struct Case {
  std::string label;
  DType result;
  Expr value;
  std::function<te::Scalar(int64_t)> expected;
};

using MakeCases = std::function<std::vector<Case>(const Expr&)>;

/// One kernel that stores each case's value to an output of its own.
te::Function case_function(const std::vector<te::Buffer>& inputs, int lanes, const MakeCases& make,
                           std::vector<Case>& cases) {
  std::vector<te::Buffer> parameters = inputs;
  const te::Stmt body = loop_over(lanes, [&](const Expr& index) {
    cases = make(index);
    std::vector<te::Stmt> stores;
    for (const Case& c : cases) {
      parameters.push_back(flat("out" + std::to_string(stores.size()), c.result, kCount));
      stores.push_back(te::make_store(parameters.back(), {index}, c.value));
    }
    return te::make_seq(stores);
  });
  return make_function("ops", parameters, cases.size(), body);
}

/// Runs all cases of one kernel and compares each element with its own expectation.
void run_cases(const std::vector<te::Buffer>& inputs, const std::vector<Tensor>& values, int lanes,
               const MakeCases& make, const target::Target& target, bool run = true) {
  std::vector<Case> cases;
  const te::Function function = case_function(inputs, lanes, make, cases);
  if (!run) {
    // Emission itself checks that the object is closed.
    EXPECT_FALSE(codegen::make_llvm_backend()->emit(function, target, {}).bytes.empty());
    return;
  }
  const Kernel kernel(function, target);
  std::vector<Tensor> arguments = values;
  for (const Case& c : cases) arguments.emplace_back(c.result, Shape{kCount});
  ASSERT_EQ(kernel.run(arguments).code, 0);
  for (size_t c = 0; c < cases.size(); ++c) {
    Tensor expected(cases[c].result, {kCount});
    for (int64_t i = 0; i < kCount; ++i) set_scalar(expected, i, cases[c].expected(i));
    const Tensor& actual = arguments[inputs.size() + c];
    const std::string difference = codegen_test::difference(actual, expected);
    if (difference.empty()) continue;
    const int64_t at = std::stoll(difference.substr(8));
    std::string operands;
    for (const Tensor& tensor : values) {
      char text[64];
      std::snprintf(text, sizeof(text), " %a(%llx)", tensor.element_as_double(at),
                    static_cast<unsigned long long>(bits_of(tensor, at)));
      operands += text;
    }
    ADD_FAILURE() << cases[c].label << " x" << lanes << " on " << target.cpu << ": " << difference << " for"
                  << operands;
  }
}

void check_dtype(DType dtype, int lanes, const target::Target& target, bool run = true) {
  const std::vector<te::Buffer> inputs = {flat("a", dtype, kCount), flat("b", dtype, kCount),
                                          flat("c", dtype, kCount), flat("d", DType::kBool, kCount)};
  const std::vector<Tensor> values = {operand(dtype, 1), operand(dtype, 2), operand(dtype, 3),
                                      operand(DType::kBool, 4)};
  const bool emulated_fma = dtype == DType::kFloat64 && !target.facts.fma;
  run_cases(
      inputs, values, lanes,
      [&](const Expr& index) {
        std::vector<Expr> args;
        for (int i = 0; i < 3; ++i) args.push_back(te::load(inputs[static_cast<size_t>(i)], {index}));
        const Expr condition = te::load(inputs[3], {index});
        std::vector<Case> cases;
        for (int op_index = 0; op_index <= static_cast<int>(ExprOp::kCheckIndex); ++op_index) {
          const ExprOp op = static_cast<ExprOp>(op_index);
          if (!applies(op, dtype) || (op == ExprOp::kFma && emulated_fma)) continue;
          const size_t arity = static_cast<size_t>(te::expr_op_arity(op));
          const Expr value =
              te::make(op, std::vector<Expr>(args.begin(), args.begin() + static_cast<long>(arity)));
          const DType result = value->type.dtype;
          cases.push_back({std::string(te::expr_op_name(op)) + " " + std::string(dtype_name(dtype)), result,
                           value, [&values, op, dtype, result, arity](int64_t i) {
                             const te::Scalar s[3] = {scalar_of(values[0], i), scalar_of(values[1], i),
                                                      scalar_of(values[2], i)};
                             return te::evaluate_op(op, dtype, result, s, arity);
                           }});
        }
        cases.push_back({"select " + std::string(dtype_name(dtype)), dtype,
                         te::select(condition, args[0], args[1]), [&values](int64_t i) {
                           return scalar_of(values[3], i).i != 0 ? scalar_of(values[0], i)
                                                                 : scalar_of(values[1], i);
                         }});
        return cases;
      },
      target, run);
}

void check_casts(DType from, int lanes, const target::Target& target, bool run = true) {
  const std::vector<te::Buffer> inputs = {flat("a", from, kCount)};
  std::vector<Tensor> values = {operand(from, 5)};
  // evaluate_op holds floats in doubles, which makes signalling NaNs quiet: reinterpret could tell.
  for (int64_t i = 0; is_float(from) && i < kCount; ++i) {
    if (std::isnan(values[0].element_as_double(i))) values[0].set_element(i, std::nan(""));
  }
  run_cases(
      inputs, values, lanes,
      [&](const Expr& index) {
        std::vector<Case> cases;
        const Expr a = te::load(inputs[0], {index});
        for (const DTypeInfo& to : kernel_dtypes()) {
          const auto expect = [&](ExprOp op) {
            return [&values, op, from, result = to.dtype](int64_t i) {
              const te::Scalar s = scalar_of(values[0], i);
              return te::evaluate_op(op, from, result, &s, 1);
            };
          };
          const std::string label = std::string(dtype_name(from)) + " to " + std::string(to.name);
          cases.push_back({"cast " + label, to.dtype, te::cast(to.dtype, a), expect(ExprOp::kCast)});
          if (to.bits == dtype_info(from).bits && (to.dtype != DType::kBool || from == DType::kBool)) {
            cases.push_back({"reinterpret " + label, to.dtype, te::reinterpret(to.dtype, a),
                             expect(ExprOp::kReinterpret)});
          }
        }
        return cases;
      },
      target, run);
}

/// Every form on the host, whose code is what runs; whole vectors on the levels below it.
std::vector<int> lane_counts(const target::Target& target) {
  if (target.cpu == host().cpu) return {1, 7, 16};
  return target.cpu == "x86-64" ? std::vector<int>{1, 16} : std::vector<int>{16};
}

class OpsTest : public testing::TestWithParam<DTypeInfo> {};

TEST_P(OpsTest, EqualEvaluateOpOnEdgeAndRandomValues) {
  for (const target::Target& target : runnable_targets()) {
    for (const int lanes : lane_counts(target)) check_dtype(GetParam().dtype, lanes, target);
  }
}

TEST_P(OpsTest, CastsEqualEvaluateOp) {
  for (const target::Target& target : runnable_targets()) {
    for (const int lanes : lane_counts(target)) check_casts(GetParam().dtype, lanes, target);
  }
}

/// Constant operands take other paths: divisions by constants, minimum and maximum with a constant.
TEST_P(OpsTest, ConstantOperandsEqualEvaluateOp) {
  const DType dtype = GetParam().dtype;
  if (dtype == DType::kBool) return;
  std::vector<double> constants = {0.0, 1.0, -1.0, 2.0, 3.0, 4.0, 7.0, 64.0, -4.0};
  if (is_float(dtype))
    constants.insert(constants.end(),
                     {-0.0, 0.5, 6.0, std::nan(""), std::numeric_limits<double>::infinity()});
  const std::vector<te::Buffer> inputs = {flat("a", dtype, kCount)};
  const std::vector<Tensor> values = {operand(dtype, 6)};
  for (const target::Target& target : runnable_targets()) {
    for (const int lanes : {16}) {
      run_cases(
          inputs, values, lanes,
          [&](const Expr& index) {
            std::vector<Case> cases;
            const Expr a = te::load(inputs[0], {index});
            for (const ExprOp op : {ExprOp::kDiv, ExprOp::kMod, ExprOp::kFloorDiv, ExprOp::kFloorMod,
                                    ExprOp::kMin, ExprOp::kMax, ExprOp::kShl, ExprOp::kShr}) {
              if (!applies(op, dtype)) continue;
              for (const double constant : constants) {
                const Expr b = te::imm_like({dtype, lanes}, constant);
                const te::Scalar right = {b->int_value, b->float_value};
                cases.push_back({std::string(te::expr_op_name(op)) + " " + std::string(dtype_name(dtype)) +
                                     " by " + std::to_string(constant),
                                 dtype, te::make(op, {a, b}), [&values, op, dtype, right](int64_t i) {
                                   const te::Scalar s[2] = {scalar_of(values[0], i), right};
                                   return te::evaluate_op(op, dtype, dtype, s, 2);
                                 }});
              }
            }
            return cases;
          },
          target);
    }
  }
}

TEST_P(OpsTest, LaneReductionsAddHalves) {
  const DType dtype = GetParam().dtype;
  if (dtype == DType::kBool) return;
  constexpr int kLanes = 8;
  const te::Buffer a = flat("a", dtype, kCount);
  const Tensor input = operand(dtype, 7);
  for (const ExprOp op :
       {ExprOp::kLaneReduceAdd, ExprOp::kLaneReduceMul, ExprOp::kLaneReduceMin, ExprOp::kLaneReduceMax}) {
    const te::Buffer out = flat("out", dtype, kCount / kLanes);
    const te::Var i = te::make_var("i");
    const Expr vector = te::load(a, {te::ramp(Expr(i) * Expr(kLanes), Expr(1), kLanes)});
    const te::Stmt body = te::make_for(i, Expr(0), Expr(kCount / kLanes), te::ForKind::kSerial,
                                       te::make_store(out, {Expr(i)}, te::make(op, {vector})));
    std::vector<Tensor> arguments = {input, Tensor(dtype, {kCount / kLanes})};
    ASSERT_EQ(Kernel(make_function("reduce", {a, out}, 1, body), host()).run(arguments).code, 0);
    Tensor expected(dtype, {kCount / kLanes});
    for (int64_t k = 0; k < kCount / kLanes; ++k) {
      te::Scalar lanes[kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = scalar_of(input, k * kLanes + lane);
      for (int width = kLanes / 2; width > 0; width /= 2) {
        for (int lane = 0; lane < width; ++lane) {
          const te::Scalar pair[2] = {lanes[lane], lanes[lane + width]};
          lanes[lane] = te::evaluate_op(te::lane_reduce_step(op), dtype, dtype, pair, 2);
        }
      }
      set_scalar(expected, k, lanes[0]);
    }
    EXPECT_EQ(difference(arguments[1], expected), "") << te::expr_op_name(op);
  }
}

/// No operator becomes a library call, also where this machine cannot run the code.
TEST_P(OpsTest, AreClosedOnOtherCpus) {
  for (const char* text : {"llvm -mcpu=cortex-a72", "llvm -mcpu=neoverse-v1", "llvm -mcpu=sandybridge"}) {
    check_dtype(GetParam().dtype, 16, parse(text), false);
    check_casts(GetParam().dtype, 16, parse(text), false);
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, OpsTest, testing::ValuesIn(kernel_dtypes()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tensormill::codegen_test
