#include "runtime/host_ops/pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/error.h"

namespace tensormill::host_ops {
namespace {

bool matches(const std::string& pattern, const std::string& text) { return Pattern(pattern).matches(text); }

TEST(Pattern, MatchesTheWholeText) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("abc", "abc"));
  EXPECT_FALSE(matches("abc", "abcd"));
  EXPECT_FALSE(matches("abc", "ab"));
  EXPECT_FALSE(matches("a", ""));
  EXPECT_TRUE(matches("a|b|", "b"));
  EXPECT_TRUE(matches("a|b|", ""));
  EXPECT_TRUE(matches("(a|bc)*d", "abcbcad"));
  EXPECT_TRUE(matches("^abc$", "abc"));
}

TEST(Pattern, Repeats) {
  EXPECT_TRUE(matches("a{3}", "aaa"));
  EXPECT_FALSE(matches("a{3}", "aa"));
  EXPECT_TRUE(matches("a{2,}", "aaaaa"));
  EXPECT_FALSE(matches("a{2,3}", "aaaa"));
  EXPECT_TRUE(matches("a{2,3}?b+?c??", "aabb"));
  EXPECT_TRUE(matches("x{a", "x{a"));
  EXPECT_TRUE(matches("(a*)*b", "aaab"));
  EXPECT_TRUE(matches("(a?){5}a{5}", "aaaaa"));
}

TEST(Pattern, KnowsClassesAndEscapes) {
  EXPECT_TRUE(matches(R"([a-c\d_-]+)", "a1_-c"));
  EXPECT_FALSE(matches("[^a-c]", "b"));
  EXPECT_TRUE(matches("[]x]+", "]x"));
  EXPECT_TRUE(matches("[[:alpha:][:^ascii:]]+", "ab\xc3\xa4"));
  EXPECT_TRUE(matches(R"(\w+\s\W\D\S)", "ab_1\t!xy"));
  EXPECT_TRUE(matches(R"(\x41\x{20ac}\.\n)", "A\xe2\x82\xac.\n"));
  EXPECT_TRUE(matches(R"(\Qa.b*\E!)", "a.b*!"));
  EXPECT_TRUE(matches(R"(\p{Greek}+\pN)",
                      "\xce\xb1\xce\xb2"
                      "7"));
  EXPECT_TRUE(matches(".", "\xf0\x9f\x8c\xb2"));
  EXPECT_FALSE(matches(".", "\n"));
  EXPECT_TRUE(matches("(?s).", "\n"));
  EXPECT_TRUE(
      matches("(?i)stra\xc3\x9f"
              "e \xc3\xa4[x-z]",
              "STRA\xc3\x9f"
              "E \xc3\x84Y"));
  EXPECT_FALSE(matches("(?i:a)b", "AB"));
  EXPECT_TRUE(matches("(?P<name>a)(?:b)", "ab"));
}

TEST(Pattern, KnowsPlaces) {
  EXPECT_TRUE(matches(R"(a\b.\bb)", "a-b"));
  EXPECT_FALSE(matches(R"(a\bb)", "ab"));
  EXPECT_TRUE(matches(R"(a\Bb)", "ab"));
  EXPECT_TRUE(matches("(?m)a$\n^b", "a\nb"));
  EXPECT_FALSE(matches("a$\n^b", "a\nb"));
  EXPECT_TRUE(matches(R"(\Aa\z)", "a"));
}

TEST(Pattern, TakesNoMoreTimeForHostileOnes) {
  // A search that goes back takes 2^n steps for these.
  const std::string many(200, 'a');
  EXPECT_FALSE(matches("(a*)*b", many));
  EXPECT_FALSE(matches("(a|aa)+b", many));
  EXPECT_FALSE(matches("(.*)(.*)(.*)(.*)(.*)x", many));
}

TEST(Pattern, RefusesWhatIsWrong) {
  for (const char* bad : {"(",          ")",
                          "(a",         "a)",
                          "[",          "[a",
                          "*a",         "a|*",
                          "a**",        "a{2}{3}",
                          "[b-a]",      "a{3,2}",
                          "a{1001}",    R"(\)",
                          R"(\1)",      "(?=a)",
                          "(?<=a)",     "(?<",
                          "[[:none:]]", R"(\x{110000})",
                          R"(\xg0)",    "((a{1000}){1000}){1000}",
                          "\xff"})
    EXPECT_THROW(Pattern{bad}, Error) << bad;
  EXPECT_THROW(Pattern(std::string(5000, '(')), Error);
}

}  // namespace
}  // namespace tensormill::host_ops
