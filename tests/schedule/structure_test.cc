// Templates know programs by their structure: what an operator is called, or whether an operator wrote the
// program at all, decides nothing.
#include <gtest/gtest.h>

#include "compiler/te/expr.h"
#include "tests/schedule/harness.h"
#include "tests/schedule/programs.h"

namespace tensormill::schedule_test {
namespace {

using te::Expr;

constexpr double kTolerance = 2e-6;
constexpr int64_t kLanes = 16;

/// Sums over blocks of an input's channels, a window of three along each of `rank` dimensions, and lanes; or,
/// where they are `depthwise`, over the window alone.
te::Program convolution(size_t rank, bool depthwise) {
  Shape x = {1, 2}, out = {1, depthwise ? 2 : 3}, taps(rank, 3), window = taps;
  const int64_t extents[] = {4, 5, 37};
  for (size_t d = 3 - rank; d < 3; ++d) {
    x.push_back(extents[d]);
    out.push_back(extents[d] - 2);
  }
  x.push_back(kLanes);
  out.push_back(kLanes);
  Shape w = {out[1]};
  if (!depthwise) w.push_back(2);
  w.insert(w.end(), window.begin(), window.end());
  if (!depthwise) w.push_back(kLanes);
  w.push_back(kLanes);
  if (!depthwise) {
    taps.insert(taps.begin(), 2);
    taps.push_back(kLanes);
  }
  const te::Tensor input = te::placeholder("x", DType::kFloat32, x),
                   weights = te::placeholder("w", DType::kFloat32, w);
  const te::Tensor sums = te::reduce("any", te::ReduceOp::kSum, out, taps,
                                     [&](const std::vector<Expr>& i, const std::vector<Expr>& r) {
                                       const size_t lead = depthwise ? 0 : 1;
                                       std::vector<Expr> at = {i[0], depthwise ? i[1] : r[0]}, of = {i[1]};
                                       for (size_t d = 0; d < rank; ++d) at.push_back(i[2 + d] + r[lead + d]);
                                       at.push_back(depthwise ? i.back() : r.back());
                                       of.insert(of.end(), r.begin(), r.end());
                                       of.push_back(i.back());
                                       return te::read(input, at) * te::read(weights, of);
                                     });
  const te::Tensor result = te::compute("result", out, [&](const std::vector<Expr>& i) {
    return te::max(te::read(sums, i), te::imm_like({DType::kFloat32, 1}, 0));
  });
  return {{input, weights}, {result}};
}

/// Whether the schedule keeps sums in registers, one to a column of a tile that is written out.
bool has_column_tile(const schedule::Schedule& steps, size_t rank) {
  const std::string columns = "i" + std::to_string(rank + 1);
  bool held = false, unrolled = false, split = false;
  for (const schedule::Step& step : steps.steps) {
    held = held || (step.primitive == "store_in" && step.args.back() == "register");
    unrolled = unrolled || (step.primitive == "unroll" && step.args.back() == columns + ".i");
    split = split || (step.primitive == "split" && step.args[1] == columns);
  }
  return held && unrolled && split;
}

TEST(Structure, ConvolutionsOfEveryRankHaveATileOfColumns) {
  for (const size_t rank : {1, 2, 3}) {
    for (const bool depthwise : {false, true}) {
      const Checked checked =
          check_program(convolution(rank, depthwise), kTolerance, test_target(512, true, 2), kTolerance);
      EXPECT_TRUE(has_column_tile(checked.schedule, rank)) << rank << depthwise << print(checked.schedule);
    }
  }
}

TEST(Structure, SumsThatMultiplyNoWeightsAreNoConvolutions) {
  const te::Tensor x = te::placeholder("x", DType::kFloat32, Shape{2, 3, 8, kLanes, 5, 6});
  const te::Tensor sums = te::reduce("conv_blocked", te::ReduceOp::kSum, Shape{2, 3, 8, kLanes}, {5, 6},
                                     [&](const std::vector<Expr>& i, const std::vector<Expr>& r) {
                                       return te::read(x, {i[0], i[1], i[2], i[3], r[0], r[1]});
                                     });
  const Checked checked = check_program({{x}, {sums}}, kTolerance, test_target(512, true, 2), kTolerance);
  EXPECT_FALSE(has_column_tile(checked.schedule, 1)) << print(checked.schedule);
}

TEST(Structure, RowsOfAnyReductionsStayInCache) {
  const Checked checked = check_program(softmax_program({3, 7, 40}), 4e-6, test_target(512, true, 2), 4e-6);
  const std::string text = print(checked.schedule);
  EXPECT_NE(text.find("rfactor"), std::string::npos) << text;
  EXPECT_NE(text.find("compute_at"), std::string::npos) << text;
}

}  // namespace
}  // namespace tensormill::schedule_test
