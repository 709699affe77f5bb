// Factors of matrices and functions of many terms by host steps: what defines them, numbers that are none,
// and plans that no compiler writes.
#include "runtime/host_ops/matrix_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "runtime/base/error.h"
#include "tests/expect_error.h"

namespace tensormill::host_ops {
namespace {

using Doubles = std::vector<double>;

/// The results of a step on operands of float64, each of the shape that is beside it; of as many elements
/// each.
std::vector<Doubles> results_of(const char* op, const std::vector<std::pair<Shape, Doubles>>& operands,
                                const std::vector<size_t>& sizes, const std::string& attributes = "{}") {
  std::vector<Tensor> tensors;
  std::vector<TensorView> inputs;
  for (const auto& [shape, values] : operands) tensors.push_back(Tensor::from<double>(shape, values));
  for (const Tensor& tensor : tensors) inputs.push_back({tensor.dtype(), tensor.shape(), tensor.data()});
  std::vector<Doubles> results;
  for (const size_t size : sizes) results.emplace_back(size);
  std::vector<void*> outputs;
  std::vector<size_t> bytes;
  for (Doubles& result : results) {
    outputs.push_back(result.data());
    bytes.push_back(result.size() * sizeof(double));
  }
  find_host_op(op)({inputs, outputs, bytes, attributes});
  return results;
}

/// A matrix of numbers that follow no rule.
Doubles unruly_numbers(size_t count) {
  Doubles made;
  for (size_t i = 0; i < count; ++i) made.push_back(std::sin(static_cast<double>(i * i + 1)));
  return made;
}

/// a [rows,inner] times b [inner,columns], or b^T.
Doubles times(const Doubles& a, const Doubles& b, size_t rows, size_t inner, size_t columns, bool is_turned) {
  Doubles product(rows * columns);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      for (size_t k = 0; k < inner; ++k)
        product[i * columns + j] += a[i * inner + k] * b[is_turned ? j * inner + k : k * columns + j];
  return product;
}

void expect_near(const Doubles& got, const Doubles& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
}

TEST(MatrixSteps, SolveWhatNeedsAnotherRowFirst) {
  const Doubles a = {0, 2, 1, 1, 0, 3, 4, 1, 0}, x = {1, -2, 0.5, 3, 2, -1};
  const Doubles b = times(a, x, 3, 3, 2, false);
  expect_near(results_of("solve_matrices", {{{1, 3, 3}, a}, {{1, 3, 2}, b}}, {6})[0], x);
  const std::vector<Doubles> logs = results_of("log_determinants", {{{1, 3, 3}, a}}, {1, 1});
  EXPECT_EQ(logs[0][0], 1);
  EXPECT_NEAR(logs[1][0], std::log(25.0), 1e-12);
}

TEST(MatrixSteps, SingularValuesOfAnyForm) {
  for (const auto& [rows, columns] : {std::pair<size_t, size_t>{5, 3}, {3, 5}, {4, 4}, {1, 3}, {0, 2}}) {
    const size_t least = std::min(rows, columns);
    const Doubles x = unruly_numbers(rows * columns);
    const Shape shape{1, static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
    const std::vector<Doubles> made =
        results_of("singular_values", {{shape, x}}, {least, rows * least, columns * least});
    Doubles scaled = made[1];
    for (size_t i = 0; i < scaled.size(); ++i) scaled[i] *= made[0][i % least];
    expect_near(times(scaled, made[2], rows, least, columns, true), x);
  }
}

TEST(MatrixSteps, VectorsOfAMatrixOfRankZero) {
  const std::vector<Doubles> made = results_of("singular_values", {{{1, 3, 2}, Doubles(6)}}, {2, 9, 4});
  EXPECT_EQ(made[0], Doubles(2));
  const Doubles one = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  expect_near(times(made[1], made[1], 3, 3, 3, true), one);
}

TEST(MatrixSteps, EigenvectorsMakeTheMatrix) {
  constexpr size_t kOrder = 7;
  Doubles x = unruly_numbers(kOrder * kOrder);
  for (size_t i = 0; i < kOrder; ++i)
    for (size_t j = 0; j < i; ++j) x[j * kOrder + i] = x[i * kOrder + j];
  const std::vector<Doubles> made =
      results_of("symmetric_eigenvectors", {{{1, kOrder, kOrder}, x}}, {kOrder, kOrder * kOrder});
  EXPECT_TRUE(std::is_sorted(made[0].begin(), made[0].end()));
  Doubles scaled = made[1];
  for (size_t i = 0; i < scaled.size(); ++i) scaled[i] *= made[0][i % kOrder];
  expect_near(times(scaled, made[1], kOrder, kOrder, kOrder, true), x);
}

/// That both parts of values and vectors are those of a matrix: x v = v diag(values), of length one, by
/// rising sizes.
void expect_eigenvectors(const Doubles& real, const Doubles& imaginary, size_t order) {
  using Number = std::complex<double>;
  const Shape shape{1, static_cast<int64_t>(order), static_cast<int64_t>(order)};
  const std::vector<Doubles> made = results_of("eigenvectors", {{shape, real}, {shape, imaginary}},
                                               {order, order, order * order, order * order});
  double most = 1;
  for (const double each : real) most = std::max(most, std::fabs(each));
  const auto vector = [&](size_t i, size_t j) {
    return Number(made[2][i * order + j], made[3][i * order + j]);
  };
  for (size_t j = 0; j < order; ++j) {
    const Number value(made[0][j], made[1][j]);
    if (j > 0) {
      EXPECT_LE(std::hypot(made[0][j - 1], made[1][j - 1]), std::abs(value) + most * 1e-12) << j;
    }
    double length = 0;
    for (size_t i = 0; i < order; ++i) {
      Number product = 0;
      for (size_t k = 0; k < order; ++k)
        product += Number(real[i * order + k], imaginary[i * order + k]) * vector(k, j);
      EXPECT_LT(std::abs(product - value * vector(i, j)), most * 1e-11) << i << "," << j;
      length += std::norm(vector(i, j));
    }
    EXPECT_NEAR(length, 1, 1e-12) << j;
  }
}

TEST(MatrixSteps, EigenvectorsOfMatricesOfAnyKind) {
  for (const size_t order : {1, 2, 3, 8, 17}) {
    const Doubles real = unruly_numbers(order * order), none(order * order);
    Doubles turned = real;
    std::reverse(turned.begin(), turned.end());
    expect_eigenvectors(real, none, order);
    expect_eigenvectors(none, real, order);
    expect_eigenvectors(real, turned, order);
  }
  expect_eigenvectors({0, 0, 1, 1, 0, 0, 0, 1, 0}, Doubles(9),
                      3);  // moves rows in a circle: no step shrinks it
  expect_eigenvectors({2, 1, 0, 0, 2, 1, 0, 0, 2}, Doubles(9), 3);  // has one vector alone
  expect_eigenvectors(Doubles(9), Doubles(9), 3);
  expect_eigenvectors({1e200, 2e200, 3e200, -1e200}, Doubles(4), 2);
}

TEST(MatrixSteps, EigenvaluesOfAQuarterTurn) {
  const std::vector<Doubles> made =
      results_of("eigenvectors", {{{1, 2, 2}, {0, -1, 1, 0}}, {{1, 2, 2}, Doubles(4)}}, {2, 2, 4, 4});
  expect_near(made[0], {0, 0});
  EXPECT_NEAR(std::fabs(made[1][0]), 1, 1e-12);
  EXPECT_NEAR(made[1][0] + made[1][1], 0, 1e-12);
  const double none = std::nan("");
  for (const Doubles& result :
       results_of("eigenvectors", {{{1, 2, 2}, {1, none, 0, 1}}, {{1, 2, 2}, Doubles(4)}}, {2, 2, 4, 4}))
    for (const double each : result) EXPECT_TRUE(std::isnan(each));
}

TEST(MatrixSteps, TrianglesMakeTheExchangedRows) {
  for (const auto& [rows, columns] : {std::pair<size_t, size_t>{5, 3}, {3, 5}, {4, 4}}) {
    const size_t least = std::min(rows, columns);
    const Doubles x = unruly_numbers(rows * columns);
    const Shape shape{1, static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
    const std::vector<Doubles> made = results_of("pivoted_triangles", {{shape, x}}, {rows * columns, least});
    const Doubles order = results_of(
        "pivoted_rows", {{{1, 1, static_cast<int64_t>(least)}, made[1]}, {shape, made[0]}}, {rows})[0];
    Doubles lower(rows * least), upper(least * columns), exchanged;
    for (size_t row = 0; row < rows; ++row)
      for (size_t k = 0; k < least; ++k)
        lower[row * least + k] = row == k ? 1 : row > k ? made[0][row * columns + k] : 0;
    for (size_t k = 0; k < least; ++k)
      for (size_t column = k; column < columns; ++column)
        upper[k * columns + column] = made[0][k * columns + column];
    for (const double row : order)
      for (size_t column = 0; column < columns; ++column)
        exchanged.push_back(x[static_cast<size_t>(row) * columns + column]);
    expect_near(times(lower, upper, rows, least, columns, false), exchanged);
  }
  for (const double wrong : {0.0, 3.0, std::nan("")})
    expect_error(ErrorCode::kTensorData, "of 2 rows", [&] {
      results_of("pivoted_rows", {{{1, 1, 1}, {wrong}}, {{1, 2, 2}, Doubles(4)}}, {2});
    });
}

TEST(MatrixSteps, ExponentialsOfTurnsAndOfLargeOnes) {
  const Doubles turn = {0, -9, 9, 0};
  expect_near(results_of("matrix_exponentials", {{{1, 2, 2}, turn}}, {4})[0],
              {std::cos(9.0), -std::sin(9.0), std::sin(9.0), std::cos(9.0)});
  expect_near(results_of("matrix_exponentials", {{{1, 2, 2}, {0, 1, 0, 0}}}, {4})[0], {1, 1, 0, 1});
  const Doubles whole = results_of("matrix_exponentials", {{{1, 2, 2}, {-40, 0, 0, 1}}}, {4})[0];
  EXPECT_NEAR(whole[0] / std::exp(-40.0), 1, 1e-12);
  EXPECT_NEAR(whole[3], std::exp(1.0), 1e-12);
}

TEST(MatrixSteps, ReflectionsMakeTheMatrix) {
  const Doubles x = unruly_numbers(15);
  const std::vector<Doubles> made = results_of("qr_reflections", {{{1, 5, 3}, x}}, {15, 3});
  const Doubles q =
      results_of("product_of_reflections", {{{1, 5, 3}, made[0]}, {{1, 1, 3}, made[1]}}, {15})[0];
  Doubles r(9);
  for (size_t row = 0; row < 3; ++row)
    for (size_t column = row; column < 3; ++column) r[row * 3 + column] = made[0][row * 3 + column];
  expect_near(times(q, r, 5, 3, 3, false), x);
}

TEST(MatrixSteps, CommonDivisors) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> x = {0, 0, 12, -12, 7, kLeast, kLeast, 6}, y = {0, -5, 18, 18, 13, 6, kLeast, 0};
  std::vector<int64_t> made(x.size());
  const std::vector<TensorView> inputs = {{DType::kInt64, {8}, x.data()}, {DType::kInt64, {8}, y.data()}};
  const std::vector<void*> outputs = {made.data()};
  const std::vector<size_t> bytes = {made.size() * sizeof(int64_t)};
  find_host_op("common_divisors")({inputs, outputs, bytes, "{}"});
  EXPECT_EQ(made, (std::vector<int64_t>{0, 5, 6, 6, 1, 2, kLeast, 6}));
}

TEST(MatrixSteps, NumbersThatAreNoneEnd) {
  for (const double wrong : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Doubles x = {1, wrong, wrong, 2};
    for (const Doubles& made : results_of("symmetric_eigenvectors", {{{1, 2, 2}, x}}, {2, 4}))
      for (const double each : made) EXPECT_TRUE(std::isnan(each));
    for (const Doubles& made : results_of("singular_values", {{{1, 2, 2}, x}}, {2, 4, 4}))
      for (const double each : made) EXPECT_TRUE(std::isnan(each));
    for (const Doubles& made :
         results_of("eigenvectors", {{{1, 2, 2}, {1, 2, 3, 4}}, {{1, 2, 2}, x}}, {2, 2, 4, 4}))
      for (const double each : made) EXPECT_TRUE(std::isnan(each));
  }
  const Doubles indefinite = results_of("cholesky_factors", {{{1, 2, 2}, {1, 2, 2, 1}}}, {4})[0];
  for (const double each : indefinite) EXPECT_TRUE(std::isnan(each));
}

TEST(MatrixSteps, UpperTrianglesOfSymmetricOnesAreNotRead) {
  const std::vector<Doubles> made =
      results_of("symmetric_eigenvectors", {{{1, 2, 2}, {1, std::nan(""), 0.5, 2}}}, {2, 4});
  const double half = std::sqrt(0.5);
  expect_near(made[0], {1.5 - half, 1.5 + half});
}

TEST(MatrixSteps, AnyNumberOfEmptyOnesEnds) {
  constexpr int64_t kMany = int64_t{1} << 48;
  const std::pair<Shape, Doubles> none{{kMany, 0, 0}, {}};
  for (const char* op : {"solve_matrices", "solve_triangles"})
    EXPECT_TRUE(results_of(op, {none, none}, {0}, R"({"lower": 1, "unit": 0})")[0].empty()) << op;
  EXPECT_TRUE(results_of("cholesky_factors", {none}, {0})[0].empty());
  EXPECT_TRUE(results_of("eigenvectors", {none, none}, {0, 0, 0, 0})[0].empty());
  for (const char* op : {"qr_factors", "symmetric_eigenvectors", "pivoted_triangles"})
    EXPECT_TRUE(results_of(op, {none}, {0, 0})[0].empty()) << op;
  EXPECT_TRUE(results_of("singular_values", {{{1, kMany, 0}, {}}}, {0, 0, 0})[0].empty());
}

TEST(MatrixSteps, PlansOfStrangers) {
  const Doubles x(6);
  const auto expect_refused = [](const char* op, const std::vector<std::pair<Shape, Doubles>>& operands,
                                 const std::vector<size_t>& sizes, const std::string& attributes = "{}") {
    expect_error(ErrorCode::kInvalidPackage, "host step",
                 [&] { results_of(op, operands, sizes, attributes); });
  };
  for (const char* op : {"cholesky_factors", "determinants"}) expect_refused(op, {{{1, 2, 3}, x}}, {6});
  expect_refused("qr_factors", {{{1, 2, 3}, x}}, {5, 6});
  expect_refused("solve_matrices", {{{1, 1, 1}, {1}}, {{1, 2, 3}, x}}, {6});
  expect_refused("pivoted_triangles", {{{1, 2, 2}, Doubles(4)}}, {4, 1});
  expect_refused("pivoted_rows", {{{2, 1, 1}, {1, 1}}, {{1, 2, 2}, Doubles(4)}}, {2});
  expect_refused("eigenvectors", {{{1, 2, 2}, Doubles(4)}, {{1, 2, 3}, x}}, {2, 2, 4, 4});
  expect_refused("eigenvectors", {{{1, 2, 2}, Doubles(4)}, {{2, 1, 2}, Doubles(4)}}, {2, 2, 4, 4});
  expect_refused("eigenvectors", {{{1, 1, 1}, {1}}, {{1, 1, 1}, {1}}}, {1, 1, 1, 2});
  expect_refused("special_function", {{{6}, x}}, {6}, R"({"name": "none"})");
}

double value(const std::string& name, const Doubles& operands) {
  std::vector<std::pair<Shape, Doubles>> each;
  for (const double x : operands) each.push_back({{1}, {x}});
  return results_of("special_function", each, {1}, R"({"name": ")" + name + "\"}")[0][0];
}

TEST(SpecialFunctions, KnowTheirValues) {
  EXPECT_NEAR(value("gamma_lower", {1, 2}), 1 - std::exp(-2.0), 1e-15);
  EXPECT_NEAR(value("gamma_upper", {0.5, 30}), std::erfc(std::sqrt(30.0)), 1e-27);
  EXPECT_NEAR(value("beta", {2, 1, 0.3}), 0.09, 1e-15);
  EXPECT_NEAR(value("zeta", {2, 1}), M_PI * M_PI / 6, 1e-14);
  // Half of the whole numbers below 0 are as far from it as those above.
  EXPECT_NEAR(value("zeta", {2, -1.5}), value("zeta", {2, 0.5}) + 4 + 4.0 / 9, 1e-13);
  EXPECT_NEAR(value("polygamma", {1, 1}), M_PI * M_PI / 6, 1e-14);
  EXPECT_NEAR(value("bessel_i0e", {800}), 0.014106945005869, 1e-15);
  for (const char* kind : {"bessel_k0", "bessel_k1e"})
    EXPECT_EQ(value(kind, {-2}), std::numeric_limits<double>::infinity()) << kind;
  for (const char* kind : {"bessel_y0", "bessel_y1"})
    EXPECT_EQ(value(kind, {-2}), -std::numeric_limits<double>::infinity()) << kind;
  EXPECT_TRUE(std::isnan(value("bessel_k0", {std::nan("")})));
  EXPECT_TRUE(std::isnan(value("gamma_lower", {-1, 2})));
  EXPECT_TRUE(std::isnan(value("beta", {1, 1, 2})));
}

TEST(SpecialFunctions, OfSmallAndLargeNumbers) {
  // The term that is nearest to 0 counts alone.
  EXPECT_NEAR(value("zeta", {2, -1e-10}), 1e20, 1e5);
  EXPECT_NEAR(value("zeta", {3, -1e-20}), -1e60, 1e45);
  // Of numbers without an inverse.
  EXPECT_NEAR(value("bessel_k0", {1e-310}), 310 * std::log(10.0) + std::log(2.0) - 0.5772156649015329, 1e-9);
  EXPECT_EQ(value("bessel_k1", {1e-310}), std::numeric_limits<double>::infinity());
  // Half, and as much more as the median is below the mean.
  for (const double a : {1e8, 1e12}) {
    const double more = 1 / (3 * std::sqrt(2 * M_PI * a));
    EXPECT_NEAR(value("gamma_lower", {a, a}), 0.5 + more, 1e-15);
    EXPECT_NEAR(value("gamma_upper", {a, a}), 0.5 - more, 1e-15);
  }
  // On either side of where the one way to compute it ends.
  for (const double x : {9.8e4, 9.99e4, 1e5, 1.002e5, 1.03e5})
    EXPECT_NEAR(value("gamma_upper", {1e5 * (1 - 1e-12), x}) / value("gamma_upper", {1e5 * (1 + 1e-12), x}),
                1, 1e-8)
        << x;
  EXPECT_TRUE(std::isnan(value("beta", {1e14, 1e14, 0.5})));
}

}  // namespace
}  // namespace tensormill::host_ops
