/// How far each function of real numbers is from the exact result, in units of the last place: by machine
/// code, for float64 and float32, over all magnitudes. The C library's long double, whose last place is 2^-11
/// of a double's, stands for the exact one. TM_TEST_ULP_POINTS sets how many arguments of each are tried.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <random>

#include "tests/driver/one_kernel.h"

namespace tensormill::driver_test::ulp {
namespace {

using Real = long double;

int64_t points() {
  const char* given = std::getenv("TM_TEST_ULP_POINTS");
  return given == nullptr ? 3000 : std::strtoll(given, nullptr, 10);
}

struct Row {
  const char* op;
  double low, high;     ///< arguments of all magnitudes within, and evenly spread ones
  double ulps, ulps32;  ///< bounds for f64 and f32
  std::function<Real(Real)> exact;
  /// Of what the last place is counted where that is more than the result: a product with a sum that cancels.
  std::function<Real(Real)> size = {};
};

Real softplus(Real x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))); }
Real expm1_below(Real x) { return x < 0 ? std::expm1(x) : x; }
constexpr Real kAlpha = 1.67326319217681884765625L, kGamma = 1.05070102214813232421875L;
constexpr Real kRootHalf = 0.707106781186547524400844362104849039L;

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"exp", -760, 720, 2, 4, [](Real x) { return std::exp(x); }},
      {"log", 0, 1e308, 1.5, 1, [](Real x) { return std::log(x); }},
      {"expm1", -100, 720, 4, 4, [](Real x) { return std::expm1(x); }},
      {"log1p", -1, 1e308, 4, 4, [](Real x) { return std::log1p(x); }},
      {"tanh", -30, 30, 3, 4, [](Real x) { return std::tanh(x); }},
      {"sigmoid", -740, 740, 3, 4, [](Real x) { return 1 / (1 + std::exp(-x)); }},
      {"erf", -8, 8, 4, 4, [](Real x) { return std::erf(x); }},
      {"erfc", -8, 28, 3, 1, [](Real x) { return std::erfc(x); }},
      {"sin", -1e6, 1e6, 2, 1, [](Real x) { return std::sin(x); }},
      {"cos", -1e6, 1e6, 2, 1, [](Real x) { return std::cos(x); }},
      {"tan", -1e6, 1e6, 4, 1, [](Real x) { return std::tan(x); }},
      {"asin", -1, 1, 3, 1, [](Real x) { return std::asin(x); }},
      {"acos", -1, 1, 3, 1, [](Real x) { return std::acos(x); }},
      {"atan", -1e300, 1e300, 3, 1, [](Real x) { return std::atan(x); }},
      {"sinh", -710, 710, 4, 1, [](Real x) { return std::sinh(x); }},
      {"cosh", -710, 710, 4, 1, [](Real x) { return std::cosh(x); }},
      {"asinh", -1e300, 1e300, 4, 4, [](Real x) { return std::asinh(x); }},
      {"acosh", 1, 1e300, 4, 4, [](Real x) { return std::acosh(x); }},
      {"atanh", -1, 1, 4, 4, [](Real x) { return std::atanh(x); }},
      {"softplus", -740, 1000, 4, 5, softplus},
      {"softsign", -1e300, 1e300, 2, 2, [](Real x) { return x / (1 + std::fabs(x)); }},
      {"elu", -100, 100, 4, 5, expm1_below},
      {"selu", -100, 100, 5, 6, [](Real x) { return kGamma * (x < 0 ? kAlpha * std::expm1(x) : x); }},
      {"mish", -80, 1000, 5, 8, [](Real x) { return x * std::tanh(softplus(x)); }},
      {"gelu", -40, 40, 4, 4, [](Real x) { return x / 2 * std::erfc(-x * kRootHalf); },
       [](Real x) { return std::fabs(x) / 2; }},
      {"sqrt", 0, 1e308, 0.51, 0.51, [](Real x) { return std::sqrt(x); }},
      {"rsqrt", 0, 1e308, 1.5, 1.5, [](Real x) { return 1 / std::sqrt(x); }},
  };
  return all;
}

/// Numbers of all magnitudes between the ends, evenly spread ones, and those next to the ends, 0 and 1.
std::vector<double> arguments(double low, double high, bool single, int64_t count) {
  std::mt19937_64 random(11);
  const double least = single ? 0x1p-126 : 0x1p-1022;
  if (single) {
    low = std::max(low, -3e38);
    high = std::min(high, 3e38);
  }
  const double largest = std::max(std::fabs(low), std::fabs(high));
  const auto unit = [&] { return std::ldexp(static_cast<double>(random() >> 11), -53); };
  std::vector<double> values;
  while (static_cast<int64_t>(values.size()) < count) {
    double value = low + (high - low) * unit();
    const uint64_t kind = random() % 4;
    if (kind == 1) value = std::exp(std::log(least) + (std::log(largest) - std::log(least)) * unit());
    // About 1, and where most of what cancels does.
    if (kind == 2) value = std::exp2(8 * unit() - 5);
    if (kind == 3) value = 1 + std::ldexp(unit() - 0.5, -static_cast<int>(random() % 40));
    if (kind != 0 && low < 0 && random() % 2 == 0) value = -value;
    if (single) value = static_cast<double>(static_cast<float>(value));
    if (value >= low && value <= high) values.push_back(value);
  }
  return values;
}

/// From the exact result, in the last places of that rounded, or of `size` where it is larger.
double ulps_off(double got, Real exact, Real size, bool single) {
  const double rounded = single ? static_cast<double>(static_cast<float>(exact)) : static_cast<double>(exact);
  if (got == rounded || (std::isnan(got) && std::isnan(rounded))) return 0;
  if (!std::isfinite(got) || !std::isfinite(rounded)) return INFINITY;
  const auto at = static_cast<double>(std::max(std::fabs(exact), size));
  double place = 0;
  if (single) {
    const auto f = static_cast<float>(at);
    place = static_cast<double>(std::nextafter(f, INFINITY)) - static_cast<double>(f);
  } else {
    place = std::nextafter(at, static_cast<double>(INFINITY)) - at;
  }
  return static_cast<double>(std::fabs(static_cast<Real>(got) - exact)) / place;
}

Tensor tensor_of(const std::vector<double>& values, bool single) {
  Tensor tensor(single ? DType::kFloat32 : DType::kFloat64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.set_element(static_cast<int64_t>(i), values[i]);
  return tensor;
}

TEST(Ulps, OfFunctionsOfOneNumber) {
  for (const Row& row : rows()) {
    for (const bool single : {false, true}) {
      const std::vector<double> x = arguments(row.low, row.high, single, points());
      const std::string type = (single ? "f32[" : "f64[") + std::to_string(x.size()) + "]";
      const auto one =
          one_kernel("(%x: " + type + ") {\n  %y: " + type + " = " + row.op + "(%x)\n  return %y\n}\n");
      const Tensor result = one->run({tensor_of(x, single)});
      double worst = 0, where = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const Real at = static_cast<Real>(x[i]);
        const double off = ulps_off(result.element_as_double(static_cast<int64_t>(i)), row.exact(at),
                                    row.size ? row.size(at) : 0, single);
        if (off <= worst) continue;
        worst = off;
        where = x[i];
      }
      EXPECT_LE(worst, single ? row.ulps32 : row.ulps)
          << row.op << (single ? " of f32" : " of f64") << " at " << std::hexfloat << where;
      RecordProperty(std::string(row.op) + (single ? "_f32" : "_f64"), std::to_string(worst));
    }
  }
}

struct Special {
  const char* op;
  double x, y;
};

TEST(Ulps, AtTheEndsOfTheirRanges) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::array kSpecials = {
      Special{"log1p", kInfinity, kInfinity}, Special{"log1p", -1, -kInfinity}, Special{"log1p", -2, kNan},
      Special{"log1p", kNan, kNan},           Special{"log1p", -0.0, -0.0},     Special{"log1p", 0, 0},
      Special{"expm1", kInfinity, kInfinity}, Special{"expm1", -kInfinity, -1}, Special{"expm1", kNan, kNan},
      Special{"expm1", -0.0, -0.0},           Special{"expm1", 0, 0},           Special{"erfc", kInfinity, 0},
      Special{"erfc", -kInfinity, 2},         Special{"erfc", kNan, kNan},      Special{"erfc", -0.0, 1}};
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16}) {
    for (const Special& special : kSpecials) {
      const std::string type = std::string(dtype_name(dtype)) + "[1]";
      SCOPED_TRACE(std::string(special.op) + " of " + type + " at " + std::to_string(special.x));
      const auto one =
          one_kernel("(%x: " + type + ") {\n  %y: " + type + " = " + special.op + "(%x)\n  return %y\n}\n");
      Tensor x(dtype, {1});
      x.set_element(0, special.x);
      const double got = one->run({x}).element_as_double(0);
      EXPECT_TRUE(got == special.y || (std::isnan(got) && std::isnan(special.y))) << got;
      EXPECT_TRUE(std::isnan(special.y) || std::signbit(got) == std::signbit(special.y)) << got;
    }
  }
}

/// Numbers of float16 whose sums, products and powers pass its largest one.
TEST(Ulps, OfHalvesWhoseStepsWouldOverflow) {
  const std::vector<double> x = {8000, 65504, 2.5, 3, 0.001};
  const std::string type = "f16[" + std::to_string(x.size()) + "]";
  const std::map<std::string, std::function<double(double)>> functions = {
      {"log1p", [](double v) { return std::log1p(v); }},
      {"expm1", [](double v) { return std::expm1(v); }},
      {"erfc", [](double v) { return std::erfc(v); }}};
  for (const auto& [op, exact] : functions) {
    const auto one =
        one_kernel("(%x: " + type + ") {\n  %y: " + type + " = " + op + "(%x)\n  return %y\n}\n");
    Tensor given(DType::kFloat16, {static_cast<int64_t>(x.size())}), want = given.clone();
    for (size_t i = 0; i < x.size(); ++i) given.set_element(static_cast<int64_t>(i), x[i]);
    for (int64_t i = 0; i < want.num_elements(); ++i) want.set_element(i, exact(given.element_as_double(i)));
    const Tensor got = one->run({given});
    for (int64_t i = 0; i < want.num_elements(); ++i)
      EXPECT_EQ(got.element_as_double(i), want.element_as_double(i))
          << op << " of " << given.element_as_double(i);
  }
}

TEST(Ulps, OfPowers) {
  std::mt19937_64 random(13);
  const auto unit = [&] { return std::ldexp(static_cast<double>(random() >> 11), -53); };
  std::vector<double> x, y;
  while (static_cast<int64_t>(x.size()) < 4 * points()) {
    // Results of all magnitudes, denormal ones included, of bases of all magnitudes.
    double base = std::exp2(2098 * unit() - 1074);
    if (random() % 2 == 0) base = 1 + std::ldexp(unit() - 0.25, -static_cast<int>(random() % 45));
    const double log = std::log(base);
    if (log == 0 || base == 0) continue;
    double exponent = (1455 * unit() - 745) / log;
    if (random() % 4 == 0) exponent = std::nearbyint(exponent);
    x.push_back(base);
    y.push_back(exponent);
  }
  const std::string type = "f64[" + std::to_string(x.size()) + "]";
  for (const char* target : {"", "llvm -mcpu=x86-64"}) {
    const auto one = one_kernel(
        "(%x: " + type + ", %e: " + type + ") {\n  %y: " + type + " = pow(%x, %e)\n  return %y\n}\n", target);
    const Tensor result = one->run({tensor_of(x, false), tensor_of(y, false)});
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double off = ulps_off(result.element_as_double(static_cast<int64_t>(i)),
                                  std::pow(static_cast<Real>(x[i]), static_cast<Real>(y[i])), 0, false);
      if (off <= worst) continue;
      worst = off;
      where = i;
    }
    EXPECT_LE(worst, 1) << "pow at " << std::hexfloat << x[where] << " to the " << y[where] << " " << target;
    RecordProperty(std::string("pow_f64_") + target, std::to_string(worst));
  }
}

}  // namespace
}  // namespace tensormill::driver_test::ulp
