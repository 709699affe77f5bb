// Each operator of TensorFlow in its forms, outputs of its own in a graph a family, against what TensorFlow
// makes of them (tests/fixtures/tensorflow_ops).
#include <limits>

#include "tests/importer/fixtures.h"

namespace tensormill::frontend {
namespace {

std::vector<std::string> families() {
  std::vector<std::string> names = fixtures_in({"tensorflow_ops"}, ".pb");
  // Results as long as a run decides have their length in a run alone (tests/e2e/tensorflow_test.py).
  for (const char* family : {"counted", "of_run", "rows", "mapped_rows", "mapped_tables", "chosen",
                             "text_grams", "sparse_chosen", "searched"})
    std::erase(names, std::string("tensorflow_ops/") + family);
  return names;
}

class TensorflowOps : public testing::TestWithParam<std::string> {};

TEST_P(TensorflowOps, GiveTheNumbersOfTensorflow) {
  const auto model = importer_of(GetParam() + ".pb");
  EXPECT_EQ(model->format(), "frozen-graph");
  const ir::Graph graph = model->import({}, ops::standard_ops());
  ir::verify(graph);
  const Tensors got = evaluated(graph, arrays_of(GetParam() + ".npz", "in."));
  expect_outputs(got, arrays_of(GetParam() + ".npz", "out."),
                 [](const Tensor& want) { return want.dtype() == DType::kFloat16 ? 2e-3 : 1e-5; });
}

INSTANTIATE_TEST_SUITE_P(Families, TensorflowOps, testing::ValuesIn(families()), label_of);

/// The derivative of log gamma, from the sum of 1 / x's and the logarithm that it nears.
double digamma_of(double x) {
  if (x < 0 && x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (; x < 50; ++x) sum += 1 / x;
  const double square = x * x;
  return std::log(x) - 0.5 / x - 1 / (12 * square) + 1 / (120 * square * square) - sum;
}

/// The y of rising(y) = x.
double solved(const std::function<double(double)>& rising, double x) {
  constexpr double kFar = 100;
  if (!(x >= rising(-kFar) && x <= rising(kFar))) return std::numeric_limits<double>::quiet_NaN();
  if (x == rising(-kFar) || x == rising(kFar)) return x == rising(kFar) ? INFINITY : -INFINITY;
  if (x == rising(0)) return 0;
  double low = -kFar, high = kFar;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (rising(middle) < x ? low : high) = middle;
  }
  return low;
}

/// A unary operator of the fixtures, on numbers whose results a formula of several steps would lose.
struct ExactFunction {
  const char* op;
  std::function<double(double)> exact;
  std::vector<float> x;
};

void expect_digits(const Tensor& got, const ExactFunction& function) {
  for (size_t i = 0; i < function.x.size(); ++i) {
    SCOPED_TRACE(std::string(function.op) + " of " + std::to_string(function.x[i]));
    const double y = got.element_as_double(static_cast<int64_t>(i));
    const double want = function.exact(static_cast<double>(function.x[i]));
    if (!std::isfinite(want) || want == 0) {
      EXPECT_TRUE(y == want || (std::isnan(y) && std::isnan(want))) << y;
      EXPECT_TRUE(std::isnan(want) || std::signbit(y) == std::signbit(want)) << y;
    } else {
      EXPECT_NEAR(y, want, 1e-6 * std::fabs(want));
    }
  }
}

TEST(TensorflowFunctions, KeepTheirDigits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<ExactFunction> functions = {
      {"Log1p",
       [](double x) { return std::log1p(x); },
       {1e37F, 3e38F, 1e10F, 8000, 1e-7F, -1e-7F, -0.5F, -0.99F, 0.0F, -0.0F, -1, -2, kInfinity, nan}},
      {"Expm1",
       [](double x) { return std::expm1(x); },
       {1e-7F, -1e-7F, 1e-3F, 0.9F, -0.9F, 1.1F, 80, -80, 0.0F, -0.0F, kInfinity, -kInfinity, nan}},
      {"Erfc",
       [](double x) { return std::erfc(x); },
       {0, 0.4F, 0.5F, 1, 3, 5, 9, -0.5F, -3, 30, kInfinity, -kInfinity, nan}},
      {"Lgamma",
       [](double x) { return std::lgamma(x); },
       {1, 2, 1.001F, 1.999F, 1e-30F, 0.3F, 2.5F, 15, 16.5F, 1e30F, -0.5F, -2.5F, -30.25F, 0, -1, kInfinity,
        -kInfinity, nan}},
      {"Digamma",
       [](double x) { return digamma_of(x); },
       {1, 2, 0.5F, 1e-6F, 9, 1e10F, -0.5F, -7.75F, -3, nan}},
      {"Erfinv",
       [](double x) { return solved([](double y) { return std::erf(y); }, x); },
       {0, 0.25F, -0.25F, 0.75F, -0.96875F, 1e-10F, 1, -1, 1.5F, nan}},
      {"Ndtri",
       [](double x) { return solved([](double y) { return std::erfc(-y * std::sqrt(0.5)) / 2; }, x); },
       {0.5F, 0.25F, 0.75F, 0.0009765625F, 1e-20F, 2e-38F, 0.99999F, 0, 1, -0.5F, 1.5F, nan}},
  };
  const auto model = importer_of("tensorflow_ops/unary.pb");
  const ir::Graph graph = model->import({}, ops::standard_ops());
  Tensors inputs = arrays_of("tensorflow_ops/unary.npz", "in.");
  for (const ExactFunction& function : functions) {
    Tensor x = inputs.at(std::string(function.op) + ".x").clone();
    ASSERT_LE(function.x.size(), static_cast<size_t>(x.num_elements()));
    for (size_t i = 0; i < function.x.size(); ++i)
      x.set_element(static_cast<int64_t>(i), static_cast<double>(function.x[i]));
    inputs.insert_or_assign(std::string(function.op) + ".x", x);
  }
  const Tensors results = evaluated(graph, inputs);
  for (const ExactFunction& function : functions)
    expect_digits(results.at(std::string(function.op) + ".out0"), function);
}

TEST(TensorflowFunctions, KeepTheirDigitsInProducts) {
  const auto model = importer_of("tensorflow_ops/binary.pb");
  const ir::Graph graph = model->import({}, ops::standard_ops());
  Tensors inputs = arrays_of("tensorflow_ops/binary.npz", "in.");
  const std::vector<float> y = {1e-7F, -1e-5F, 1e37F, 0.25F};
  inputs.insert_or_assign("Xlog1py.x", Tensor::from<float>({4}, std::vector<float>{3, 3, 3, 0}));
  inputs.insert_or_assign("Xlog1py.y", Tensor::from<float>({4}, y));
  const Tensor got = evaluated(graph, inputs).at("Xlog1py.out0");
  for (int64_t i = 0; i < 3; ++i) {
    const double want = 3 * std::log1p(static_cast<double>(y[static_cast<size_t>(i)]));
    EXPECT_NEAR(got.element_as_double(i), want, 1e-6 * std::fabs(want));
  }
  EXPECT_EQ(got.element_as_double(3), 0);
}

}  // namespace
}  // namespace tensormill::frontend
