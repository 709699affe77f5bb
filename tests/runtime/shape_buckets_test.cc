/// Buckets as the command line and JSON write them; extents as formulas.
#include "runtime/base/shape_buckets.h"

#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/base/extents/dim_formula.h"

namespace tensormill {
namespace {

TEST(ShapeBuckets, ListsAndRanges) {
  const ShapeBuckets buckets = parse_shape_buckets("N=1,8;H=32..96:32");
  EXPECT_EQ(buckets.at("N"), (std::vector<int64_t>{1, 8}));
  EXPECT_EQ(buckets.at("H"), (std::vector<int64_t>{32, 64, 96}));
  EXPECT_EQ(parse_bucket("1,4..8:2,16"), (std::vector<int64_t>{1, 4, 6, 8, 16}));
  EXPECT_TRUE(parse_shape_buckets("").empty());
  // The step past the last extent is none of 64 bits.
  EXPECT_EQ(parse_bucket("1..9223372036854775807:9223372036854775000"),
            (std::vector<int64_t>{1, 9223372036854775001}));
}

TEST(ShapeBuckets, Mistakes) {
  for (const char* text :
       {"N", "=1", "N=", "N=0", "N=2,1", "N=1,1", "N=a", "N=1..8", "N=8..1:1", "N=1..9:0", "N=1..99999:1",
        "N=1;N=2", "N=-1", "N=9223372036854775808", "N=1..9223372036854775808:2"}) {
    EXPECT_THROW(parse_shape_buckets(text), Error) << text;
  }
}

TEST(DimFormula, FloorsAndOverflows) {
  const std::vector<int64_t> dims = {7, -1};
  EXPECT_EQ(evaluate(DimTerm{0, 1, 1, 2}, dims), 4);
  EXPECT_EQ(evaluate(DimTerm{1, 3, 0, 2}, dims), -2);
  EXPECT_EQ(evaluate(DimFormula{-1, {{2, {{0, 1, 0, 1}, {0, 1, 1, 2}}}}}, dims), 55);
  EXPECT_THROW(evaluate(DimFormula{0, {{int64_t{1} << 61, {{0, 1, 0, 1}}}}}, dims), Error);
}

/// The product is rounded to float32 before it is rounded down.
TEST(DimFormula, DerivedExtents) {
  EXPECT_EQ(scaled_extent(50, 0.7F), 35);
  EXPECT_EQ(scaled_extent(49, 0.7F), 34);
  EXPECT_EQ(scaled_extent(100, 0.29F), 29);
  EXPECT_THROW(scaled_extent(int64_t{1} << 40, 1e30F), Error);
  // (dim + 1) / 2 times 1.3, and that plus the dim times 0.7.
  const std::vector<DerivedExtent> derived = {{{0, {{1, {{0, 1, 1, 2}}}}}, 1.3F},
                                              {{0, {{1, {{1, 1, 0, 1}}}, {1, {{0, 1, 0, 1}}}}}, 0.7F},
                                              {{-5, {{1, {{0, 1, 0, 1}}}}}, 1, 12}};
  EXPECT_EQ(with_derived(std::vector<int64_t>{21}, derived), (std::vector<int64_t>{21, 14, 24, 12}));
  EXPECT_EQ(with_derived(std::vector<int64_t>{9}, derived), (std::vector<int64_t>{9, 6, 10, 4}));
  // What is behind the fifth of at most nine elements; and an extent times 16 / itself.
  const DerivedExtent behind{{-5, {{1, {{0, 1, 0, 1}}}}}, 1, 4, 0};
  EXPECT_EQ(with_derived(std::vector<int64_t>{3}, std::vector{behind}).back(), 0);
  EXPECT_EQ(with_derived(std::vector<int64_t>{7}, std::vector{behind}).back(), 2);
  EXPECT_EQ(with_derived(std::vector<int64_t>{70}, std::vector{behind}).back(), 4);
  DerivedExtent resized{{0, {{1, {{0, 1, 0, 1}}}}}};
  resized.ratio = ExtentRatio{{16, {}}, resized.of};
  EXPECT_EQ(with_derived(std::vector<int64_t>{108}, std::vector{resized}).back(), 16);
  EXPECT_EQ(with_derived(std::vector<int64_t>{109}, std::vector{resized}).back(), 15);
  EXPECT_EQ(with_derived(std::vector<int64_t>{0}, std::vector{resized}).back(), 0);
}

/// A height of at most 12 that keeps to the ratio of 16 and the width.
TEST(DimFormula, ExtentsThatKeepToAnotherRatio) {
  DerivedExtent height{{0, {{1, {{0, 1, 0, 1}}}}}};
  height.ratio = ExtentRatio{{16, {}}, {0, {{1, {{1, 1, 0, 1}}}}}};
  height.rounds = true;
  height.most = 12;
  const auto at = [&](int64_t h, int64_t w) {
    return with_derived(std::vector<int64_t>{h, w}, std::vector{height}).back();
  };
  EXPECT_EQ(at(24, 24), 12);
  EXPECT_EQ(at(31, 90), 6);
  EXPECT_EQ(at(29, 90), 5);
  EXPECT_EQ(at(3, 32), 2);
  EXPECT_EQ(at(7, 0), 12);
  EXPECT_EQ(rounded_extent(5, 7, 2), 18);
  EXPECT_THROW(rounded_extent(int64_t{1} << 60, 9, 1), Error);
}

}  // namespace
}  // namespace tensormill
