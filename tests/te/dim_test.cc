#include "compiler/te/dim.h"

#include <gtest/gtest.h>

#include "runtime/base/extents/extent_functions.h"
#include "tests/expect_error.h"

namespace tensormill::te {
namespace {

std::string normal(std::string_view text) { return parse_dim(text).to_string(); }

TEST(Dim, SumsAndProductsHaveOneForm) {
  const Dim n = Dim::symbol("N"), s = Dim::symbol("S");
  EXPECT_EQ(n * s, s * n);
  EXPECT_EQ((n + 1) * (n - 1), n * n - 1);
  EXPECT_EQ((n + s) * (n + s), n * n + n * s * 2 + s * s);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_TRUE((n - n).is_constant());
  EXPECT_NE(n, s);
  EXPECT_NE(n, n + 1);
  EXPECT_EQ(normal("S*N + 3 - 2*N"), "N*S - 2*N + 3");
  EXPECT_EQ(normal("8 - H"), "8 - H");
  EXPECT_EQ(normal("-H"), "-H");
  EXPECT_EQ(normal("-2*H - 3"), "-2*H - 3");
}

TEST(Dim, QuotientsTakeOutWhatDivides) {
  EXPECT_EQ(normal("(H+1)//2"), "(H + 1)//2");
  EXPECT_EQ(normal("(H-1)//2 + 1"), "(H + 1)//2");
  EXPECT_EQ(normal("4*N//2"), "2*N");
  EXPECT_EQ(normal("(H*W*6)//3"), "2*H*W");
  EXPECT_EQ(normal("(2*N + 1)//2"), "N");
  EXPECT_EQ(normal("(6*N + 4)//4"), "N + N//2 + 1");
  EXPECT_EQ(normal("N//2//3"), "N//6");
  EXPECT_EQ(normal("(H//2 + 1)//2"), "(H + 2)//4");
  EXPECT_EQ(normal("-((-N)//2)"), "(N + 1)//2");
  EXPECT_EQ(normal("N*S//S"), "N");
  EXPECT_EQ(normal("(N*N - 1)//(N + 1)"), "N - 1");
  EXPECT_EQ(normal("6*N*H//(4*N)"), "H + H//2");
  EXPECT_EQ(normal("N*S//(2*S)"), "N//2");
  EXPECT_EQ(normal("(N*S + H)//S"), "N + H//S");
  EXPECT_EQ(normal("7//2"), "3");
  EXPECT_EQ(normal("-7//2"), "-4");
  EXPECT_EQ(ceildiv(Dim::symbol("N"), 4).to_string(), "(N + 3)//4");
}

TEST(Dim, RemaindersAreQuotientsAndPrintAsRemainders) {
  EXPECT_EQ(normal("H % 4"), "H % 4");
  EXPECT_EQ(normal("H % 4 + H//4*4"), "H");
  EXPECT_EQ(normal("(H + 1) % 2"), "(H + 1) % 2");
  EXPECT_EQ(normal("3*(H % 4) + 1"), "3*(H % 4) + 1");
  EXPECT_EQ(normal("(3*N) % 2"), "N % 2");
  EXPECT_EQ(normal("(8*N + 3) % 4"), "3");
  EXPECT_EQ(normal("N % S"), "N % S");
}

TEST(Dim, MinimaAndMaximaHaveOneForm) {
  EXPECT_EQ(normal("min(N, 8)"), "min(N, 8)");
  EXPECT_EQ(normal("min(8, min(N, 6))"), "min(N, 6)");
  EXPECT_EQ(normal("min(N + 2, N)"), "N");
  EXPECT_EQ(normal("max(N + 2, N)"), "N + 2");
  EXPECT_EQ(normal("min(N + 1, 9)"), "min(N, 8) + 1");
  EXPECT_EQ(normal("min(N + M, N + 8)"), "N + min(M, 8)");
  EXPECT_EQ(normal("2*min(N, 4)"), normal("min(8, 2*N)"));
  EXPECT_EQ(normal("-min(-N, -M)"), "max(M, N)");
  EXPECT_EQ(normal("max(min(N, M), min(M, N))"), "min(M, N)");
  EXPECT_EQ(normal("min(3, 5)"), "3");
}

TEST(Dim, SumsOfSeveralMinimaStaySums) {
  Dim sum(0), parts(1);
  for (int level = 0; level < 12; ++level) {
    const Dim own = Dim::symbol("H" + std::to_string(level));
    sum += min(own, 1000);
    parts += own;
  }
  // One alone is taken apart, of twelve there were 4096 combinations.
  EXPECT_LT(min(sum, 5000).size(), 100);
  EXPECT_EQ(min(sum, 5000), min(Dim(5000), sum));
  EXPECT_EQ(min(sum, min(sum, 5000)), min(sum, 5000));
  std::map<std::string, int64_t> values;
  for (int level = 0; level < 12; ++level) values["H" + std::to_string(level)] = 150 * level;
  EXPECT_EQ(min(sum, 5000).evaluate(values), 5000);
  values["H11"] = values["H10"] = values["H9"] = values["H8"] = 0;
  EXPECT_EQ(min(sum, 5000).evaluate(values), 4150);
  EXPECT_EQ(min(min(parts, 7) + 2, 8), min(parts + 2, 8));
}

TEST(Dim, CallsAreExactAndFoldConstants) {
  EXPECT_EQ(normal("scaled(H, 2.5f)"), "scaled(H, 2.5f)");
  EXPECT_EQ(normal("scaled(10, 2.5f)"), "25");
  EXPECT_EQ(normal("scaled(H + H, 0.1f)"), "scaled(2*H, 0.1f)");
  EXPECT_EQ(call("scaled", {Dim::symbol("H"), factor_bits(0.25F)}).evaluate({{"H", 10}}), 2);
  // The product of float32 rounds up to 3 where the exact one is below.
  EXPECT_EQ(parse_dim("scaled(H, 0.3f)").evaluate({{"H", 10}}), 3);
  EXPECT_EQ(parse_dim("rounded_by_ratio(H, W, 3)").evaluate({{"H", 10}, {"W", 2}}), 7);
  expect_error(ErrorCode::kInvalidArgument, "no function", [] { call("sqrt", {Dim(2)}); });
}

TEST(Dim, SubstitutesAllAtOnceAndFolds) {
  const Dim dim = parse_dim("min(N, S)*((N + 1)//2) + S");
  EXPECT_EQ(dim.substitute({{"N", Dim::symbol("S")}, {"S", Dim::symbol("N")}}),
            parse_dim("min(N,S)*((S+1)//2)+N"));
  EXPECT_EQ(dim.substitute({{"N", 8}, {"S", 5}}), Dim(25));
  EXPECT_EQ(dim.symbols(), (std::vector<std::string>{"N", "S"}));
  EXPECT_TRUE(dim.mentions("S"));
  EXPECT_FALSE(dim.mentions("H"));
}

TEST(Dim, EvaluatesOrSaysThatThereIsNoValue) {
  EXPECT_EQ(parse_dim("N//S").evaluate({{"N", 7}, {"S", 2}}), 3);
  EXPECT_EQ(parse_dim("N//S").evaluate({{"N", 7}, {"S", 0}}), std::nullopt);
  EXPECT_EQ(parse_dim("N//S").substitute({{"S", 0}}).evaluate({{"N", 7}}), std::nullopt);
  EXPECT_EQ(parse_dim("N*S").evaluate({{"N", int64_t{1} << 40}, {"S", int64_t{1} << 40}}), std::nullopt);
  EXPECT_EQ(parse_dim("N").evaluate({}), std::nullopt);
  EXPECT_EQ(Dim(5).evaluate({}), 5);
}

TEST(Dim, RefusesWhatPassesItsLimits) {
  expect_error(ErrorCode::kTooLarge, "beyond 64 bits", [] { parse_dim("9223372036854775807*N*2"); });
  Dim power = Dim::symbol("N") + Dim::symbol("M") + 1;
  expect_error(ErrorCode::kTooLarge, "more than 16384 parts", [&power] {
    for (int i = 0; i < 40; ++i) power *= power;
  });
  Dim nested = Dim::symbol("N");
  expect_error(ErrorCode::kTooLarge, "nested deeper", [&nested] {
    for (int i = 0; i < 100; ++i) nested = floordiv(3, nested + 1);
  });
}

TEST(Dim, GoesToExpressionsAndBack) {
  const std::map<std::string, Var> variables = {
      {"N", make_var("N")}, {"S", make_var("S")}, {"scaled(N, 2.5f)", make_var("r")}};
  for (const char* text : {"N*S + 3", "(N + 1)//2", "N % 4", "min(N, S, 8)", "7"}) {
    const Dim dim = parse_dim(text);
    EXPECT_EQ(to_dim(to_expr(dim, variables)), dim) << text;
  }
  const Dim resized = parse_dim("scaled(N, 2.5f) + 1");
  EXPECT_EQ(to_dim(to_expr(resized, variables))->to_string(), "r + 1");
  EXPECT_EQ(to_dim(to_expr(resized, variables), {{variables.at("scaled(N, 2.5f)"), resized - 1}}), resized);
}

}  // namespace
}  // namespace tensormill::te
