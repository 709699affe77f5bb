#include "runtime/base/extent.h"

#include <gtest/gtest.h>

#include <limits>

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
