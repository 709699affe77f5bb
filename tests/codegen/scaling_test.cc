// Scaling by powers of two and reciprocals, as instructions: of all widths of vectors the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/codegen/support.h"

namespace tensormill::codegen_test {
namespace {

using te::Expr;
using te::ExprOp;

constexpr int64_t kScaled = 4096;

std::vector<float> results(ExprOp op, const std::vector<Tensor>& values, int lanes) {
  std::vector<te::Buffer> parameters;
  for (size_t i = 0; i < values.size(); ++i)
    parameters.push_back(flat("x" + std::to_string(i), DType::kFloat32, kScaled));
  const te::Buffer out = flat("out", DType::kFloat32, kScaled);
  const te::Var i = te::make_var("i");
  const Expr base = Expr(i) * Expr(static_cast<int64_t>(lanes));
  const Expr index = lanes == 1 ? base : te::ramp(base, Expr(1), lanes);
  std::vector<Expr> args;
  for (const te::Buffer& parameter : parameters) args.push_back(te::load(parameter, {index}));
  parameters.push_back(out);
  const te::Stmt body = te::make_for(i, Expr(0), Expr(kScaled / lanes), te::ForKind::kSerial,
                                     te::make_store(out, {index}, te::make(op, args)));
  const Kernel kernel(make_function("scaling", parameters, 1, body), host());
  std::vector<Tensor> arguments = values;
  arguments.emplace_back(DType::kFloat32, Shape{kScaled});
  EXPECT_EQ(kernel.run(arguments).code, 0);
  std::vector<float> made(kScaled);
  std::memcpy(made.data(), arguments.back().data(), arguments.back().num_bytes());
  return made;
}

/// Normal numbers of both signs, from 2^-least to 2^least.
Tensor numbers(int least, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor tensor(DType::kFloat32, {kScaled});
  for (int64_t i = 0; i < kScaled; ++i) {
    const double size = std::ldexp(1.0 + static_cast<double>(random() % (1 << 23)) / (1 << 23),
                                   static_cast<int>(random() % (2 * static_cast<uint64_t>(least))) - least);
    tensor.set_element(i, random() % 2 == 0 ? size : -size);
  }
  return tensor;
}

class Scaling : public ::testing::TestWithParam<int> {
protected:
  void SetUp() override {
    if (!host().facts.scaling) GTEST_SKIP() << "no AVX-512 with short vectors";
  }
};

TEST_P(Scaling, ScaleIsRoundedOnce) {
  Tensor x = numbers(20, 1), n(DType::kFloat32, {kScaled});
  for (int64_t i = 0; i < kScaled; ++i) n.set_element(i, static_cast<double>(i % 401) - 200);
  x.set_element(5, std::nan(""));
  x.set_element(6, 0);
  n.set_element(7, -std::numeric_limits<double>::infinity());
  n.set_element(8, std::nan(""));
  const std::vector<float> made = results(ExprOp::kScale, {x, n}, GetParam());
  for (int64_t i = 0; i < kScaled; ++i) {
    const te::Scalar args[2] = {{0, x.element_as_double(i)}, {0, n.element_as_double(i)}};
    const auto expected =
        static_cast<float>(te::evaluate_op(ExprOp::kScale, DType::kFloat32, DType::kFloat32, args, 2).f);
    const float actual = made[static_cast<size_t>(i)];
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(actual)) << i;
    } else {
      EXPECT_EQ(actual, expected) << args[0].f << " * 2^" << args[1].f;
    }
  }
}

TEST_P(Scaling, ReciprocalsAreWithinOneUlp) {
  Tensor x = numbers(120, 2);
  x.set_element(0, 1);
  x.set_element(1, -1);
  x.set_element(2, 2);
  const std::vector<float> made = results(ExprOp::kReciprocal, {x}, GetParam());
  for (int64_t i = 0; i < kScaled; ++i) {
    const double exact = 1 / x.element_as_double(i);
    const auto near = static_cast<float>(exact);
    const double ulp =
        std::abs(static_cast<double>(std::nextafter(near, std::numeric_limits<float>::infinity())) -
                 static_cast<double>(near));
    EXPECT_LE(std::abs(static_cast<double>(made[static_cast<size_t>(i)]) - exact), ulp) << 1 / exact;
  }
  EXPECT_EQ(made[0], 1);
  EXPECT_EQ(made[1], -1);
  EXPECT_EQ(made[2], 0.5);
  // What a vector holds and what is left of a row are the same.
  EXPECT_EQ(made, results(ExprOp::kReciprocal, {x}, 1));
}

INSTANTIATE_TEST_SUITE_P(Lanes, Scaling, ::testing::Values(1, 2, 4, 8, 16, 32, 64));

}  // namespace
}  // namespace tensormill::codegen_test
