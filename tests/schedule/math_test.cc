// Vector math against the C library in long double: every function, ordinary and special arguments.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "compiler/lower/lower.h"
#include "compiler/te/interpret.h"
#include "tests/schedule/harness.h"

namespace tensormill::schedule_test {
namespace {

using te::Expr;
using te::ExprOp;
using Reference = std::function<long double(long double)>;

struct Case {
  ExprOp op;
  const char* name;
  double low, high;
  double ulps;  ///< of f32 and f64
  Reference reference;
};

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> arguments(double low, double high) {
  std::vector<double> values = {0.0,   -0.0, 1e-300, -1e-300,   1e-40, -1e-40,       1e-10, 0.5,   -0.5,
                                1,     -1,   1.5,    -1.5,      2,     -2,           kInf,  -kInf, 1e30,
                                -1e30, 88,   -88,    100,       -100,  std::nan(""), 708,   709.5, -740,
                                -750,  720,  0.55,   0.5500001, 5.99,  6.01};
  for (int i = 0; i <= 4000; ++i) values.push_back(low + (high - low) * i / 4000.0);
  for (int i = -40; i < 40; ++i) {
    values.push_back(std::ldexp(1.3, i));
    values.push_back(-std::ldexp(1.7, i));
  }
  return values;
}

double ulp_of(double value, bool single) {
  if (single) {
    const float at = static_cast<float>(std::abs(value));
    return static_cast<double>(std::nextafter(at, std::numeric_limits<float>::infinity())) -
           static_cast<double>(at);
  }
  const double at = std::abs(value);
  return std::nextafter(at, kInf) - at;
}

// Interprets the legalized kernel out[i] = op(x[i]...) and compares with the reference.
std::vector<double> run(ExprOp op, DType dtype, const std::vector<std::vector<double>>& args, bool fma,
                        bool scaling = false) {
  const Shape shape = {static_cast<int64_t>(args[0].size())};
  te::Program program;
  std::vector<Tensor> tensors;
  for (const std::vector<double>& values : args) {
    program.inputs.push_back(te::placeholder("x", dtype, shape));
    Tensor tensor(dtype, shape);
    for (size_t i = 0; i < values.size(); ++i) tensor.set_element(static_cast<int64_t>(i), values[i]);
    tensors.push_back(tensor);
  }
  program.outputs = {te::compute("out", shape, [&](const std::vector<Expr>& i) {
    std::vector<Expr> reads;
    for (const te::Tensor& input : program.inputs) reads.push_back(te::read(input, i));
    return te::make(op, reads);
  })};
  target::Target target = test_target(256, fma, 1);
  target.facts.scaling = scaling;
  const schedule::Schedule steps = schedule::default_schedule(program, target);
  const te::Function lowered = lower::lower(schedule::apply(program, steps, "k"), target);
  tensors.push_back(Tensor::zeros(dtype, shape));
  EXPECT_EQ(te::interpret(lowered, tensors).code, 0);
  std::vector<double> result;
  for (int64_t i = 0; i < shape[0]; ++i) result.push_back(tensors.back().element_as_double(i));
  return result;
}

void expect_ulps(double got, long double exact, double ulps, bool single, const std::string& where) {
  const double want = single ? static_cast<double>(static_cast<float>(exact)) : static_cast<double>(exact);
  if (std::isnan(want) || std::isnan(got)) {
    EXPECT_EQ(std::isnan(want), std::isnan(got)) << where << " gives " << got << ", expected " << want;
    return;
  }
  if (got == want) {
    EXPECT_EQ(std::signbit(got), std::signbit(want)) << where;
    return;
  }
  EXPECT_LE(std::abs(static_cast<double>(static_cast<long double>(got) - exact)), ulps * ulp_of(want, single))
      << where << " gives " << got << ", expected " << want;
}

class MathUlp : public ::testing::TestWithParam<Case> {};

TEST_P(MathUlp, StaysWithinItsBound) {
  const Case& test = GetParam();
  for (const bool single : {true, false}) {
    for (const bool fma : {true, false}) {
      std::vector<double> x = arguments(test.low, test.high);
      const bool circular = test.op == ExprOp::kSin || test.op == ExprOp::kCos || test.op == ExprOp::kTan;
      const double last = single ? 3e9 : 1e6;
      if (circular) {
        for (double v = 40; v < last; v *= 1.0009) x.insert(x.end(), {v, -v});
      }
      std::erase_if(x, [&](double v) { return circular && std::isfinite(v) && std::abs(v) > last; });
      if (single) {
        for (double& value : x) value = static_cast<double>(static_cast<float>(value));
      }
      const std::vector<double> got = run(test.op, single ? DType::kFloat32 : DType::kFloat64, {x}, fma);
      for (size_t i = 0; i < x.size(); ++i) {
        expect_ulps(got[i], test.reference(x[i]), test.ulps, single,
                    std::string(test.name) + (single ? " f32" : " f64") + (fma ? " fma" : "") + " at " +
                        std::to_string(x[i]));
      }
      if (HasFailure()) return;
    }
  }
}

// The functions that stay in f32: every 8191st bit pattern, infinities, NaNs and denormals among them.
class MathUlp32 : public MathUlp {};

TEST_P(MathUlp32, HoldsOverTheBitPatterns) {
  const Case& test = GetParam();
  std::vector<double> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 8191) {
    const uint32_t pattern = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &pattern, sizeof(value));
    x.push_back(static_cast<double>(value));
  }
  struct Way {
    bool fma, scaling;
  };
  for (const Way way : {Way{true, true}, Way{true, false}, Way{false, false}}) {
    const std::vector<double> got = run(test.op, DType::kFloat32, {x}, way.fma, way.scaling);
    for (size_t i = 0; i < x.size() && !HasFailure(); ++i) {
      expect_ulps(got[i], test.reference(x[i]), test.ulps, true,
                  std::string(test.name) + (way.scaling ? " by scaling at " : " at ") + std::to_string(x[i]));
    }
  }
}

#define TM_CASE(op, name, low, high, ulps) \
  Case { ExprOp::op, #name, low, high, ulps, name }
long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

INSTANTIATE_TEST_SUITE_P(Functions, MathUlp,
                         ::testing::Values(TM_CASE(kExp, expl, -110, 95, 4), TM_CASE(kLog, logl, 1e-3, 50, 4),
                                           TM_CASE(kTanh, tanhl, -10, 10, 4), TM_CASE(kErf, erfl, -7, 7, 4),
                                           TM_CASE(kErfc, erfcl, -7, 28, 4),
                                           TM_CASE(kSigmoid, sigmoid, -110, 110, 4),
                                           TM_CASE(kSin, sinl, -30, 30, 4), TM_CASE(kCos, cosl, -30, 30, 4),
                                           TM_CASE(kTan, tanl, -30, 30, 4), TM_CASE(kAsin, asinl, -1, 1, 4),
                                           TM_CASE(kAcos, acosl, -1, 1, 4), TM_CASE(kAtan, atanl, -20, 20, 4),
                                           TM_CASE(kSinh, sinhl, -20, 20, 4),
                                           TM_CASE(kCosh, coshl, -20, 20, 4)),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(Functions, MathUlp32,
                         ::testing::Values(TM_CASE(kExp, expl, 0, 0, 4), TM_CASE(kTanh, tanhl, 0, 0, 4),
                                           TM_CASE(kErf, erfl, 0, 0, 4), TM_CASE(kSigmoid, sigmoid, 0, 0, 4)),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Pow, AgreesWithTheLibraryAndItsSpecialCases) {
  const std::vector<double> bases = {0.0, -0.0, 1,    -1,   2,     -2,           0.5,    -0.5,
                                     3,   10,   1e-3, kInf, -kInf, std::nan(""), 1.0001, 7.25};
  const std::vector<double> exponents = {0.0, -0.0, 1,     -1,           2,  3,   -3, 0.5, -0.5,
                                         1.5, kInf, -kInf, std::nan(""), 20, -20, 31};
  std::vector<double> x, y;
  for (double base : bases) {
    for (double exponent : exponents) {
      x.push_back(base);
      y.push_back(exponent);
    }
  }
  for (const bool single : {true, false}) {
    const DType dtype = single ? DType::kFloat32 : DType::kFloat64;
    const std::vector<double> got = run(ExprOp::kPow, dtype, {x, y}, true);
    for (size_t i = 0; i < x.size(); ++i) {
      const long double base = single ? static_cast<float>(x[i]) : x[i];
      const long double exact = std::pow(base, static_cast<long double>(y[i]));
      const double growth = std::abs(static_cast<double>(y[i] * std::log(std::abs(base))));
      const double ulps = single ? 4 : 4 + (std::isfinite(growth) ? 2 * growth : 0);
      expect_ulps(got[i], exact, ulps, single,
                  "pow(" + std::to_string(x[i]) + ", " + std::to_string(y[i]) + ")");
    }
  }
}

}  // namespace
}  // namespace tensormill::schedule_test
