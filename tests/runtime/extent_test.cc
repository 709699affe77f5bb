#include "runtime/base/extents/extent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/extents/extent_functions.h"
#include "tests/expect_error.h"

namespace tensormill {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

std::optional<int64_t> value(std::string_view text, std::vector<int64_t> values = {}) {
  return Extent::parse(text).evaluate(values);
}

TEST(Extent, ComputesAsPythonDoes) {
  EXPECT_EQ(value("1 + 2*3 - 4//3"), 6);
  EXPECT_EQ(value("-7//2"), -4);
  EXPECT_EQ(value("-7 % 4"), 1);
  EXPECT_EQ(value("7 % -4"), -1);
  EXPECT_EQ(value("-(3 - 5)*2"), 4);
  EXPECT_EQ(value("--3"), 3);
  EXPECT_EQ(value("min(5, 3, 4) + max(1, 2)"), 5);
  EXPECT_EQ(value("(H+1)//2", {9}), 5);
  EXPECT_EQ(value("N*S + N", {3, 4}), 15);
  EXPECT_EQ(value("scaled(H, 0.3f)", {10}), 3);
  EXPECT_EQ(value("-9223372036854775808"), kLowest);
}

TEST(Extent, StepsOfFloatArithmeticAreThoseOfFloat32) {
  const auto code = [](float number) { return float_code(number).value(); };
  const float numbers[] = {-1e30F, -2.5F, -1, -1e-40F, 0, 1e-40F, 0.3F, 1, 1.5F, 2.5F, 16777217.F, 1e30F};
  for (const float x : numbers) {
    EXPECT_EQ(float_of_code(code(x)), x);
    EXPECT_EQ(value("f32_floor(X)", {code(x)}), code(std::floor(x)));
    EXPECT_EQ(value("f32_ceil(X)", {code(x)}), code(std::ceil(x)));
    EXPECT_EQ(value("f32_round(X)", {code(x)}), code(std::nearbyint(x)));
    for (const float y : numbers) {
      EXPECT_EQ(code(x) < code(y), x < y) << x << " and " << y;
      EXPECT_EQ(value("f32_add(X, Y)", {code(x), code(y)}), float_code(x + y));
      EXPECT_EQ(value("f32_sub(X, Y)", {code(x), code(y)}), float_code(x - y));
      EXPECT_EQ(value("f32_mul(X, Y)", {code(x), code(y)}), float_code(x * y));
      EXPECT_EQ(value("f32_div(X, Y)", {code(x), code(y)}), y == 0 ? std::nullopt : float_code(x / y));
    }
  }
  EXPECT_EQ(value("f32_to_int(X)", {code(-2.5F)}), -2);
  EXPECT_EQ(value("f32_of(X)", {(1 << 24) + 1}), code(16777216.F)) << "rounded";
  EXPECT_EQ(value("f32_sqrt(X)", {code(2)}), code(std::sqrt(2.F)));
  EXPECT_EQ(value("f32_sqrt(X)", {code(-1)}), std::nullopt);
  EXPECT_EQ(value("f32_to_int(X)", {code(1e30F)}), std::nullopt);
  EXPECT_EQ(value("f32_floor(X)", {0x7F800000}), std::nullopt) << "no number";
  EXPECT_EQ(value("steps_of_f32(X, Y, 1056964608)", {code(0), code(3.2F)}), 7) << "by 0.5";
  EXPECT_EQ(value("steps_of_f32(X, Y, 1056964608)", {code(3), code(1)}), 0);
}

TEST(Extent, HasNoValueWhereOneDoesNotFit) {
  EXPECT_EQ(value("N//S", {1, 0}), std::nullopt);
  EXPECT_EQ(value("N % S", {1, 0}), std::nullopt);
  EXPECT_EQ(value("N*N", {int64_t{1} << 40}), std::nullopt);
  EXPECT_EQ(value("-N", {kLowest}), std::nullopt);
  EXPECT_EQ(value("N//(-1)", {kLowest}), std::nullopt);
  EXPECT_EQ(value("N % (-1)", {kLowest}), 0);
  EXPECT_EQ(value("scaled(N, 3e38f)", {int64_t{1} << 60}), std::nullopt);
}

TEST(Extent, PrintsWhatParsesToTheSameProgram) {
  for (const char* text :
       {"(H + 1)//2", "N*S", "min(N, 8)", "H % 4", "a - (b - c)", "a*(b//c)", "-(a + b)*c", "scaled(H, 2.5f)",
        "max(min(a, b), c)", "-(5)", "a - -3", "'past length' + 'it\\'s'", "rounded_by_ratio(a, b, c % d)"}) {
    EXPECT_EQ(Extent::parse(text).to_string(), text);
  }
  EXPECT_EQ(Extent::parse("( (N) )+1").to_string(), "N + 1");
}

TEST(Extent, TakesValuesInTheOrderOfOtherNames) {
  const std::vector<std::string> names = {"C", "B", "A"};
  const Extent bound = Extent::parse("A - 2*C").bound_to(names);
  EXPECT_EQ(bound.evaluate(std::vector<int64_t>{1, 0, 10}), 8);
  expect_error(ErrorCode::kInvalidArgument, "D", [&names] { Extent::parse("D + 1").bound_to(names); });
}

TEST(Extent, ReadsAFormulaAtTheStartOfAText) {
  std::string_view text = "(H+1)//2,W]";
  EXPECT_EQ(Extent::parse_prefix(text).to_string(), "(H + 1)//2");
  EXPECT_EQ(text, ",W]");
}

TEST(Extent, SaysWhereItCannotBeRead) {
  const auto refused = [](const char* text, const char* what, ErrorCode code = ErrorCode::kInvalidArgument) {
    expect_error(code, what, [text] { Extent::parse(text); });
  };
  refused("", "at byte 1");
  refused("N + ", "at byte 5");
  refused("(N", "\")\" is missing at byte 3");
  refused("N S", "nothing more is expected at byte 3");
  refused("9223372036854775808", "beyond 64 bits");
  refused("sqrt(N)", "no function \"sqrt\"");
  refused("scaled(N, 0f)", "no positive float32");
  refused("scaled(N, 2)", "\"f\" is missing");
  refused("'N", "does not end");
  refused("''", "without a name");
  const std::string deep = std::string(100, '(') + "N" + std::string(100, ')');
  refused(deep.c_str(), "deeper than 64", ErrorCode::kTooLarge);
  std::string wide = "N";
  for (int i = 0; i < 20000; ++i) wide += "+N";
  refused(wide.c_str(), "more than 16384 operations", ErrorCode::kTooLarge);
  refused(std::string(70000, ' ').c_str(), "more than 65536", ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace tensormill
