/// Sums over windows that reach past the border: where all taps of a tile count they are unrolled, without
/// conditions.
#include <gtest/gtest.h>

#include "compiler/plan/generic_taps.h"
#include "compiler/plan/generic_tiling.h"
#include "compiler/te/interpret.h"
#include "compiler/te/text.h"
#include "tests/driver/generic_nests.h"

namespace tensormill::plan::generic_nests {
namespace {

constexpr int64_t kTapChannels = 16;

/// Each row of x [W, 16] with its neighbours, times weights [3, 16] by their distance.
te::Program windows(const Expr& width) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {width, Expr(kTapChannels)});
  const Tensor w = te::placeholder("w", DType::kFloat32, Shape{3, kTapChannels});
  const Tensor out = te::reduce(
      "out", te::ReduceOp::kSum, {width, Expr(kTapChannels)}, {Expr(3)}, [&](const auto& at, const auto& k) {
        const Expr place = at[0] + k[0] - Expr(1);
        return te::select(te::logical_and(place >= Expr(0), place < width),
                          te::read(x, {clamped(place, width), at[1]}) * te::read(w, {k[0], at[1]}),
                          te::float_imm(DType::kFloat32, 0));
      });
  return {{x, w}, {out}};
}

Nest window_nest(Expr& width, TermVars& vars) {
  width = vars.expr({0, {{1, {{0, 1, 0, 1}}}}});
  const Nests nests = split_nests(windows(width));
  EXPECT_EQ(nests.nests.size(), 1U);
  return nests.nests.at(0);
}

/// Each element of x [H, W, 16] with its neighbours in two rows and columns each way, times weights [5, 5,
/// 16].
te::Program maps(const Expr& height, const Expr& width) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {height, width, Expr(kTapChannels)});
  const Tensor w = te::placeholder("w", DType::kFloat32, Shape{5, 5, kTapChannels});
  const auto inside = [](const Expr& place, const Expr& extent) {
    return te::logical_and(place >= Expr(0), place < extent);
  };
  const Tensor out =
      te::reduce("out", te::ReduceOp::kSum, {height, width, Expr(kTapChannels)}, {Expr(5), Expr(5)},
                 [&](const auto& at, const auto& k) {
                   const Expr row = at[0] + k[0] - Expr(2), column = at[1] + k[1] - Expr(2);
                   return te::select(te::logical_and(inside(row, height), inside(column, width)),
                                     te::read(x, {clamped(row, height), clamped(column, width), at[2]}) *
                                         te::read(w, {k[0], k[1], at[2]}),
                                     te::float_imm(DType::kFloat32, 0));
                 });
  return {{x, w}, {out}};
}

class GenericTaps : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Lanes, GenericTaps, testing::Values(1, 4, 8, 16));

TEST_P(GenericTaps, BordersAndTilesInsideAreRight) {
  Expr width;
  TermVars vars(1);
  const Nest nest = window_nest(width, vars);
  const Loops loops = loops_of({vars, nest}, GetParam());
  for (const int64_t extent : {1, 2, 3, 7, 8, 9, 10, 11, 16, 17, 26, 41}) {
    std::vector<tensormill::Tensor> arguments = {small_integers({extent, kTapChannels}),
                                                 small_integers({3, kTapChannels})};
    const tensormill::Tensor expected = te::evaluate(windows(Expr(extent)), arguments)[0];
    arguments.emplace_back(DType::kFloat32, expected.shape());
    ASSERT_EQ(te::interpret(loops.function, arguments, loops.dims_at({extent}), 3).code, 0);
    for (int64_t i = 0; i < expected.num_elements(); ++i)
      ASSERT_EQ(arguments.back().element_as_double(i), expected.element_as_double(i)) << extent << " " << i;
  }
}

/// Rows of the map that borders cut, and columns, and both; of maps whose height is known, too.
TEST_P(GenericTaps, BordersOfMapsAreRight) {
  for (const int64_t height : {0, 1, 3, 6}) {  // 0: a symbol
    TermVars vars(2);
    const Expr rows = height == 0 ? vars.expr({0, {{1, {{0, 1, 0, 1}}}}}) : Expr(height);
    const Expr columns = vars.expr({0, {{1, {{1, 1, 0, 1}}}}});
    const Nests nests = split_nests(maps(rows, columns));
    ASSERT_EQ(nests.nests.size(), 1U);
    const Loops loops = loops_of({std::move(vars), nests.nests[0]}, GetParam());
    for (const int64_t width : {1, 4, 7, 13, 25}) {
      const int64_t all = height == 0 ? width % 8 : height;
      std::vector<tensormill::Tensor> arguments = {small_integers({all, width, kTapChannels}),
                                                   small_integers({5, 5, kTapChannels})};
      const tensormill::Tensor expected = te::evaluate(maps(Expr(all), Expr(width)), arguments)[0];
      arguments.emplace_back(DType::kFloat32, expected.shape());
      ASSERT_EQ(te::interpret(loops.function, arguments, loops.dims_at({all, width}), 3).code, 0);
      for (int64_t i = 0; i < expected.num_elements(); ++i)
        ASSERT_EQ(arguments.back().element_as_double(i), expected.element_as_double(i))
            << all << " x " << width << " " << i;
    }
  }
}

/// A row that a border cuts asks about its taps' rows once each, and unrolls their columns.
TEST(GenericTapsText, ColumnsInsideAreUnrolledInRowsThatABorderCuts) {
  TermVars vars(2);
  const Expr width = vars.expr({0, {{1, {{1, 1, 0, 1}}}}});
  const Nests nests = split_nests(maps(Expr(6), width));
  const Tiling tiling = choose_tiling(nests.nests.at(0), {16});
  EXPECT_EQ(tiling.block_axis, 1U);
  EXPECT_FALSE(tiling.column_axis) << "what counts depends on the row of the map";
  const std::string text = te::print(loops_of({std::move(vars), nests.nests[0]}, 16).function);
  const size_t outer = text.find("for r0 = 0, 5");
  ASSERT_NE(outer, std::string::npos) << text;
  const size_t columns = text.find("unrolled r1 = 0, 5", outer), end = text.find("} else", columns);
  ASSERT_NE(end, std::string::npos) << text;
  EXPECT_EQ(text.substr(columns, end - columns).find("if ("), std::string::npos) << text;
}

TEST(GenericTapsText, TapsInsideAreUnrolledWithoutConditions) {
  Expr width;
  TermVars vars(1);
  const Nest nest = window_nest(width, vars);
  const std::string text = te::print(loops_of({vars, nest}, 16).function);
  const size_t first = text.find("unrolled r0 = 0, 3");
  ASSERT_NE(first, std::string::npos) << text;
  const size_t other = text.find("} else", first);
  ASSERT_NE(other, std::string::npos) << text;
  EXPECT_EQ(text.substr(first, other - first).find("if ("), std::string::npos) << text;
}

/// Against all values of the variable, for steps up and down, in all four comparisons.
TEST(ForAll, HoldsExactlyWhereEachValueDoes) {
  const te::Var i = te::make_var("i"), at = te::make_var("at");
  constexpr int64_t kCount = 4;
  for (const te::ExprOp op : {te::ExprOp::kLt, te::ExprOp::kLe, te::ExprOp::kGt, te::ExprOp::kGe}) {
    for (const int64_t step : {-3, -1, 0, 1, 2}) {
      const Expr condition = te::make(op, {Expr(at) + Expr(i) * Expr(step), Expr(5)});
      const Expr all = for_all(condition, i, kCount);
      ASSERT_TRUE(all);
      for (int64_t place = -12; place < 24; ++place) {
        bool expected = true;
        const auto value = [&](const Expr& expr, int64_t k) {
          const Expr made = te::substitute(te::substitute(expr, at, Expr(place)), i, Expr(k));
          return *te::as_int(te::simplify(made)) != 0;
        };
        for (int64_t k = 0; k < kCount; ++k) expected = expected && value(condition, k);
        EXPECT_EQ(value(all, 0), expected) << static_cast<int>(op) << " " << step << " " << place;
      }
    }
  }
}

TEST(ForAll, IsUnknownForWhatIsNoComparisonOfSums) {
  const te::Var i = te::make_var("i"), at = te::make_var("at");
  EXPECT_FALSE(for_all(Expr(at) * Expr(i) < Expr(5), i, 3));
  EXPECT_FALSE(for_all(te::make(te::ExprOp::kEq, {Expr(at) + Expr(i), Expr(5)}), i, 3));
}

}  // namespace
}  // namespace tensormill::plan::generic_nests
