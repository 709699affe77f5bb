#include "compiler/te/dim_facts.h"

#include <gtest/gtest.h>

namespace tensormill::te {
namespace {

Dim dim(std::string_view text) { return parse_dim(text); }

struct Facts : DimFacts {
  Facts() {
    declare("N", 1);
    declare("S", 1, 512);
    declare("H", 1, std::nullopt, 32);
    declare("P", 0, Dim::symbol("S"));
  }
  Truth le(std::string_view a, std::string_view b) const { return prove_le(dim(a), dim(b)); }
  Truth equal(std::string_view a, std::string_view b) const { return prove_equal(dim(a), dim(b)); }
  Truth divisible(std::string_view a, std::string_view b) const { return prove_divisible(dim(a), dim(b)); }
  std::string simple(std::string_view a) const { return simplify(dim(a)).to_string(); }
};

TEST(DimFacts, OrdersByRangesAndSymbolicBounds) {
  const Facts facts;
  EXPECT_EQ(facts.le("1", "N"), Truth::kProven);
  EXPECT_EQ(facts.le("N + 1", "N"), Truth::kRefuted);
  EXPECT_EQ(facts.le("S", "512"), Truth::kProven);
  EXPECT_EQ(facts.le("513", "S"), Truth::kRefuted);
  EXPECT_EQ(facts.le("N", "S"), Truth::kUnknown);
  EXPECT_EQ(facts.le("P", "S"), Truth::kProven);
  EXPECT_EQ(facts.le("P", "512"), Truth::kProven);
  EXPECT_EQ(facts.le("N*P", "N*S"), Truth::kProven);
  EXPECT_EQ(facts.le("(S + 1)//2", "S"), Truth::kProven);
  EXPECT_EQ(facts.le("min(N, S)", "S"), Truth::kProven);
  EXPECT_EQ(facts.le("N*S*H", "N*S*H - 1"), Truth::kRefuted);
  EXPECT_EQ(facts.le("N", "N*S*H"), Truth::kProven);
}

TEST(DimFacts, QuotientsBySymbolsAreBounded) {
  const Facts facts;
  EXPECT_EQ(facts.le("S*(N//S)", "N"), Truth::kProven);
  EXPECT_EQ(facts.le("N % S", "S - 1"), Truth::kProven);
  EXPECT_EQ(facts.le("0", "N % S"), Truth::kProven);
}

TEST(DimFacts, DivisorsMakeQuotientsExact) {
  const Facts facts;
  EXPECT_EQ(facts.divisible("H", "32"), Truth::kProven);
  EXPECT_EQ(facts.divisible("H", "8"), Truth::kProven);
  EXPECT_EQ(facts.divisible("H", "64"), Truth::kUnknown);
  EXPECT_EQ(facts.divisible("H*N + 64", "16"), Truth::kProven);
  EXPECT_EQ(facts.divisible("H*N + 1", "16"), Truth::kRefuted);
  EXPECT_EQ(facts.divisible("N*S", "S"), Truth::kProven);
  EXPECT_EQ(facts.equal("4*(H//4)", "H"), Truth::kProven);
  EXPECT_EQ(facts.equal("(H + 1)//2", "H//2"), Truth::kProven);
  EXPECT_EQ(facts.equal("H + 1", "2*N"), Truth::kRefuted);
  EXPECT_EQ(facts.simple("8*(H//8) + N"), "H + N");
  EXPECT_EQ(facts.simple("(H//2 + 1)//2"), "H//4");
  EXPECT_EQ(facts.simple("H//64"), "H//64");
  EXPECT_EQ(facts.simple("H % 8"), "0");
}

TEST(DimFacts, DivisibleProductsAndSumsAreUsed) {
  Facts facts;
  facts.assume_divisible(dim("N*S"), 3);
  EXPECT_EQ(facts.divisible("N*S", "3"), Truth::kProven);
  EXPECT_EQ(facts.divisible("2*N*S*H + 6", "6"), Truth::kProven);
  EXPECT_EQ(facts.simple("3*((N*S)//3)"), "N*S");
  EXPECT_EQ(facts.equal("(N*S) % 3", "0"), Truth::kProven);
  facts.assume_divisible(dim("N + 1"), 4);
  EXPECT_EQ(facts.equal("4*((N + 1)//4)", "N + 1"), Truth::kProven);
  EXPECT_EQ(facts.simple("(N + 1) % 4 + N"), "N");
}

TEST(DimFacts, EquationsReplaceSymbols) {
  Facts facts;
  facts.assume_equal(dim("T"), dim("P + S"));
  EXPECT_EQ(facts.equal("T - S", "P"), Truth::kProven);
  EXPECT_EQ(facts.le("T", "2*S"), Truth::kProven);
  facts.assume_equal(dim("N*A"), dim("S*B"));
  EXPECT_EQ(facts.equal("2*N*A + 1", "2*S*B + 1"), Truth::kProven);
  facts.assume_le(dim("N"), dim("S//2"));
  EXPECT_EQ(facts.le("2*N", "S"), Truth::kProven);
}

TEST(DimFacts, SimplifyDecidesMinimaMaximaAndQuotients) {
  const Facts facts;
  EXPECT_EQ(facts.simple("min(P, S)"), "P");
  EXPECT_EQ(facts.simple("max(min(S, 600), N, 1)"), "max(N, S)");
  EXPECT_EQ(facts.simple("S//513"), "0");
  EXPECT_EQ(facts.simple("(1024*N + S)//1024"), "N");
  EXPECT_EQ(facts.simple("P//(S + 1)"), "0");
  EXPECT_EQ(facts.simple("scaled(min(P, S), 2.0f)"), "scaled(P, 2f)");
}

TEST(DimFacts, BoundsFollowMonotoneFunctions) {
  const Facts facts;
  const Interval scaled = facts.bounds(dim("scaled(S, 2.5f)"));
  EXPECT_EQ(scaled.low, 2);
  EXPECT_EQ(scaled.high, 1280);
  EXPECT_EQ(facts.bounds(dim("scaled_by_ratio(S, 3, N)")).low, 0);
  EXPECT_EQ(facts.bounds(dim("scaled_by_ratio(S, 3, N)")).high, 1536);
  EXPECT_EQ(facts.bounds(dim("f32_to_int(f32_mul(f32_of(S), 1056964608))")).high, 256) << "by 0.5";
  EXPECT_EQ(facts.bounds(dim("f32_sub(f32_of(S), f32_of(N))")).low, std::nullopt) << "may be negative";
  EXPECT_EQ(facts.bounds(dim("N*S")).low, 1);
  EXPECT_EQ(facts.bounds(dim("N*S")).high, std::nullopt);
  EXPECT_EQ(facts.bounds(dim("N - S")).low, -511);
}

TEST(Unify, SolvesForOneSymbol) {
  const Facts facts;
  Unified solved = unify(dim("T"), dim("P + S"), facts);
  EXPECT_EQ(solved.kind, Unified::Kind::kSolved);
  EXPECT_EQ(solved.symbol, "T");
  EXPECT_EQ(solved.value.to_string(), "P + S");
  EXPECT_TRUE(solved.conditions.empty());
  // The sum of the others rather than a difference of them, wherever it was declared.
  DimFacts of_sums;
  for (const char* name : {"M", "P", "K"}) of_sums.declare(name, 1);
  solved = unify(dim("M"), dim("P + K"), of_sums);
  EXPECT_EQ(solved.symbol + " = " + solved.value.to_string(), "M = K + P");
  of_sums.assume_equal(dim("P + K"), dim("M"));
  EXPECT_EQ(of_sums.solved(dim("2*M")).to_string(), "2*K + 2*P");
  solved = unify(dim("N*T"), dim("N*S"), facts);
  EXPECT_EQ(solved.symbol + " = " + solved.value.to_string(), "T = S");
  solved = unify(dim("2*T"), dim("H"), facts);
  EXPECT_EQ(solved.symbol + " = " + solved.value.to_string(), "T = H//2");
  solved = unify(dim("3*T + 1"), dim("6*N + 4"), facts);
  EXPECT_EQ(solved.symbol + " = " + solved.value.to_string(), "T = 2*N + 1");
}

TEST(Unify, SaysWhatElseHasToHold) {
  const Facts facts;
  const Unified solved = unify(dim("P"), dim("N - 2"), facts);
  EXPECT_EQ(solved.kind, Unified::Kind::kSolved);
  EXPECT_EQ(solved.symbol + " = " + solved.value.to_string(), "P = N - 2");
  ASSERT_EQ(solved.conditions.size(), 2U);
  EXPECT_EQ(solved.conditions[0].first, Dim(0));
  EXPECT_EQ(solved.conditions[0].second.to_string(), "N - 2");
  EXPECT_EQ(solved.conditions[1].second.to_string(), "S");
}

/// As many counts as a detector has classes, each bounded by the same extents, and their sum: the ends of
/// long sums are known, and what bounds one count is no fact about another.
TEST(DimFacts, SumsOfManyCountsHaveEnds) {
  DimFacts facts;
  facts.declare("N", 1);
  Dim all = 0;
  for (int i = 0; i < 200; ++i) {
    const Dim count = Dim::symbol("C" + std::to_string(i));
    facts.declare(*count.as_symbol(), i == 0 ? 0 : 1, dim("3*N"));
    all += min(count, Dim(300));
  }
  EXPECT_EQ(facts.prove_le(199, all), Truth::kProven);
  EXPECT_EQ(facts.prove_equal(all, 0), Truth::kRefuted);
  EXPECT_EQ(facts.prove_le(all, 60000), Truth::kProven);
  EXPECT_EQ(facts.prove_le(200, all), Truth::kUnknown);
  EXPECT_EQ(facts.prove_le(dim("C7"), dim("3*N")), Truth::kProven);
  EXPECT_EQ(facts.prove_le(dim("C7"), dim("C8")), Truth::kUnknown);
  facts.assume_equal(dim("C7"), dim("2*N"));
  EXPECT_EQ(facts.prove_le(dim("C7 + 1"), dim("3*N")), Truth::kProven) << "it is 1 or more";
  EXPECT_EQ(facts.prove_le(dim("C8 + 1"), dim("3*N")), Truth::kUnknown);
}

TEST(DimFacts, WhatIsNoneTogetherIsNoneByItself) {
  Facts facts;
  for (const char* name : {"A", "B", "C", "D"}) facts.declare(name, 0, dim("7*N"));
  facts.declare("K", 0, dim("min(A, 300) + min(B, N) + C*D"));
  EXPECT_EQ(facts.le("K", "0"), Truth::kUnknown);
  facts.assume_equal(dim("4*min(A, 300) + 4*min(B, N) + 8*max(C, D)"), 0);
  for (const char* name : {"A", "B", "C", "D", "K", "min(A, S)"})
    EXPECT_EQ(facts.equal(name, "0"), Truth::kProven) << name;
  EXPECT_EQ(facts.equal("P", "0"), Truth::kUnknown);
  Facts others;
  others.assume_equal(dim("P"), dim("N"));
  EXPECT_EQ(others.equal("P", "0"), Truth::kRefuted) << "a difference says nothing of either";
}

TEST(Unify, TellsWhatCannotBeToldOrIsWrong) {
  const Facts facts;
  EXPECT_EQ(unify(dim("N*S"), dim("S*N"), facts).kind, Unified::Kind::kEqual);
  EXPECT_EQ(unify(dim("2*N"), dim("2*S + 1"), facts).kind, Unified::Kind::kConflict);
  EXPECT_EQ(unify(dim("S"), dim("600"), facts).kind, Unified::Kind::kConflict);
  EXPECT_EQ(unify(dim("2*N"), dim("3*S"), facts).kind, Unified::Kind::kGuard);
  EXPECT_EQ(unify(dim("N//2"), dim("S//3"), facts).kind, Unified::Kind::kGuard);
}

}  // namespace
}  // namespace tensormill::te
