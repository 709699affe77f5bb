#include "runtime/host_ops/fourier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/base/error.h"

namespace tensormill::host_ops {
namespace {

using Complex = FourierPlan::Complex;

std::vector<Complex> by_definition(const std::vector<Complex>& x, bool inverse) {
  const size_t length = x.size();
  std::vector<Complex> y(length);
  for (size_t k = 0; k < length; ++k) {
    for (size_t n = 0; n < length; ++n) {
      const double turns = static_cast<double>(k * n % length) / static_cast<double>(length);
      y[k] += x[n] * std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * turns);
    }
  }
  return y;
}

double largest_difference(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double most = 0;
  for (size_t k = 0; k < a.size(); ++k) most = std::max(most, std::abs(a[k] - b[k]));
  return most;
}

TEST(Fourier, LengthsOfAllFactorsFollowTheDefinition) {
  for (const size_t length : {1u, 2u, 3u, 4u, 5u, 6u, 8u, 12u, 13u, 17u, 30u, 97u, 128u, 143u, 202u, 289u}) {
    for (const bool inverse : {false, true}) {
      std::vector<Complex> x(length), y(length);
      std::vector<double> real(length);
      for (size_t n = 0; n < length; ++n) {
        real[n] = std::sin(static_cast<double>(3 * n + 1));
        x[n] = {real[n], std::cos(static_cast<double>(7 * n))};
      }
      FourierPlan plan(length, inverse);
      plan.run(x, y);
      const double limit = 1e-13 * static_cast<double>(length);
      EXPECT_LE(largest_difference(y, by_definition(x, inverse)), limit) << length;
      plan.run_real(real, y);
      const std::vector<Complex> wide(real.begin(), real.end());
      EXPECT_LE(largest_difference(y, by_definition(wide, inverse)), limit) << length;
    }
  }
}

/// Runs the step on lines x of the shape and a window of ones, for an output of so many floats.
void run_step(const Shape& shape, int64_t length, const char* attributes, size_t outputs) {
  const Tensor x(DType::kFloat32, shape);
  const Tensor window(DType::kFloat32, {length});
  std::vector<float> result(outputs);
  const std::vector<TensorView> inputs = {{x.dtype(), x.shape(), x.data()},
                                          {window.dtype(), window.shape(), window.data()}};
  const std::vector<void*> targets = {result.data()};
  const std::vector<size_t> bytes = {outputs * sizeof(float)};
  fourier({inputs, targets, bytes, attributes});
}

TEST(Fourier, PlansThatNoCompilerWritesAreRefused) {
  constexpr const char *kForward = R"({"inverse":0,"hermitian":0})",
                       *kBack = R"({"inverse":1,"hermitian":1})";
  EXPECT_NO_THROW(run_step({3, 4, 1}, 4, kForward, 24));
  EXPECT_NO_THROW(run_step({3, 2, 2}, 5, kBack, 15));
  EXPECT_NO_THROW(run_step({0, 4, 1}, 4, kForward, 0));
  EXPECT_NO_THROW(run_step({3, 0, 1}, 4, kForward, 24));
  EXPECT_THROW(run_step({3, 4, 1}, 4, kForward, 23), Error);
  EXPECT_THROW(run_step({3, 4, 3}, 4, kForward, 24), Error);
  EXPECT_THROW(run_step({3, 4, 1}, 4, kBack, 12), Error);
  EXPECT_THROW(run_step({4}, 4, kForward, 8), Error);
  EXPECT_THROW(run_step({3, 4, 1}, 4, "{}", 24), Error);
}

TEST(Fourier, ALengthOfTheRunLeavesZerosBehindIt) {
  const Tensor x = Tensor::from<float>({2, 3, 1}, std::vector<float>{1, 2, 4, -1, 0, 3});
  const Tensor window = Tensor::from<float>({5}, std::vector<float>(5, 1));
  for (const int64_t length : {-1, 0, 2, 5, 9}) {
    const Tensor count = Tensor::from<int64_t>({1}, std::vector<int64_t>{length});
    std::vector<float> result(20, 7);
    const std::vector<TensorView> inputs = {{x.dtype(), x.shape(), x.data()},
                                            {window.dtype(), window.shape(), window.data()},
                                            {count.dtype(), count.shape(), count.data()}};
    const std::vector<void*> targets = {result.data()};
    const std::vector<size_t> bytes = {result.size() * sizeof(float)};
    fourier({inputs, targets, bytes, R"({"inverse":0,"hermitian":0})"});
    const auto there = static_cast<size_t>(std::clamp<int64_t>(length, 0, 5));
    for (size_t line = 0; line < 2; ++line) {
      std::vector<Complex> given(there);
      for (size_t n = 0; n < std::min<size_t>(there, 3); ++n)
        given[n] = x.element_as_double(static_cast<int64_t>(3 * line + n));
      const std::vector<Complex> expected = by_definition(given, false);
      for (size_t k = 0; k < 5; ++k) {
        const Complex right = k < there ? expected[k] : Complex();
        EXPECT_NEAR(result[10 * line + 2 * k], right.real(), 1e-5) << length;
        EXPECT_NEAR(result[10 * line + 2 * k + 1], right.imag(), 1e-5) << length;
      }
    }
  }
}

}  // namespace
}  // namespace tensormill::host_ops
