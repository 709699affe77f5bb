/// Stages that choose among values by comparing an axis with each of its places: their places are computed
/// together, without a choice, and stages between them take no memory.
#include <gtest/gtest.h>

#include "compiler/plan/generic_choices.h"
#include "compiler/plan/generic_knobs.h"
#include "compiler/te/interpret.h"
#include "compiler/te/text.h"
#include "tests/driver/generic_nests.h"

namespace tensormill::plan::generic_nests {
namespace {

constexpr int64_t kChannels = 8;

/// The element of `values` at `index`.
Expr pick(const Expr& index, const std::vector<Expr>& values) {
  Expr result = values.back();
  for (size_t i = values.size() - 1; i-- > 0;)
    result = te::select(index == Expr(static_cast<int64_t>(i)), values[i], result);
  return result;
}

/// Sums and differences of neighbours of x [W, 8] by pairs [T, 2, 8], T = ceil(W / 2): then of these the
/// doubled sum and the difference, in the places of x, plus x; and sums over all of the first, if wanted.
te::Program pairs(const Expr& width, bool has_sum) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {width, Expr(kChannels)});
  const Expr count = te::floordiv(width + Expr(1), Expr(2));
  const Tensor both = te::compute("both", {count, Expr(2), Expr(kChannels)}, [&](const auto& at) {
    std::vector<Expr> values;
    for (int64_t k = 0; k < 2; ++k) {
      const Expr place = at[0] * Expr(2) + Expr(k);
      values.push_back(te::select(place < width, te::read(x, {clamped(place, width), at[2]}),
                                  te::float_imm(DType::kFloat32, 0)));
    }
    return pick(at[1], {values[0] + values[1], values[0] - values[1]});
  });
  const Tensor scaled = te::compute("scaled", {count, Expr(2), Expr(kChannels)}, [&](const auto& at) {
    const Expr sum = te::read(both, {at[0], Expr(0), at[2]}),
               difference = te::read(both, {at[0], Expr(1), at[2]});
    return pick(at[1], {sum + sum, difference});
  });
  const Tensor out = te::compute("out", {width, Expr(kChannels)}, [&](const auto& at) {
    return te::read(scaled, {te::floordiv(at[0], Expr(2)), te::floormod(at[0], Expr(2)), at[1]}) +
           te::read(x, {at[0], at[1]});
  });
  if (!has_sum) return {{x}, {out}};
  const Tensor total = te::reduce("total", te::ReduceOp::kSum, {Expr(2), Expr(kChannels)}, {count},
                                  [&](const auto& at, const auto& k) {
                                    return te::read(both, {k[0], at[0], at[1]});
                                  });
  return {{x}, {total}};
}

TermVars one_dim(Expr& width) {
  TermVars vars(1);
  width = vars.expr({0, {{1, {{0, 1, 0, 1}}}}});
  return vars;
}

class GenericChoices : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Lanes, GenericChoices, testing::Values(1, 4, 8, 16));

TEST_P(GenericChoices, AllPlacesOfAnIterationAreComputedTogether) {
  Expr width;
  const TermVars vars = one_dim(width);
  const Nests nests = split_nests(pairs(width, false));
  ASSERT_EQ(nests.nests.size(), 1U);
  ASSERT_EQ(nests.nests[0].places.size(), 2U);
  const Loops loops = loops_of({vars, nests.nests[0]}, GetParam());
  for (const int64_t extent : {1, 2, 3, 4, 5, 8, 9}) {
    std::vector<tensormill::Tensor> arguments = {small_integers({extent, kChannels})};
    const tensormill::Tensor expected = te::evaluate(pairs(Expr(extent), false), arguments)[0];
    arguments.emplace_back(DType::kFloat32, expected.shape());
    ASSERT_EQ(te::interpret(loops.function, arguments, loops.dims_at({extent}), 3).code, 0);
    for (int64_t i = 0; i < expected.num_elements(); ++i)
      ASSERT_EQ(arguments.back().element_as_double(i), expected.element_as_double(i)) << extent << " " << i;
  }
}

TEST_P(GenericChoices, PlacesAreComputedInGroupsAsAKnobSays) {
  Expr width;
  const TermVars vars = one_dim(width);
  const GenericSource source{split_nests(pairs(width, false)).nests[0], vars, {GetParam()}, {}};
  const schedule::Tuned rule = choose_loops(source, schedule::choose_from({}));
  const schedule::Knob& places = rule.knobs.back();
  EXPECT_EQ(places.name, "places");
  EXPECT_EQ(places.analytic, 2);
  EXPECT_EQ(places.candidates, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(te::print(loops_by(source, rule.schedule).function),
            te::print(build_generic_loops(source.nest, source.vars, source.facts)));
  const Loops loops{loops_by(source, schedule::parse_schedule("choose places 1\n")).function,
                    vars.formulas()};
  te::verify(loops.function, te::Level::kLoops);
  for (const int64_t extent : {1, 2, 3, 4, 5, 8, 9}) {
    SCOPED_TRACE(extent);
    std::vector<tensormill::Tensor> arguments = {small_integers({extent, kChannels})};
    const tensormill::Tensor expected = te::evaluate(pairs(Expr(extent), false), arguments)[0];
    arguments.emplace_back(DType::kFloat32, expected.shape());
    ASSERT_EQ(te::interpret(loops.function, arguments, loops.dims_at({extent}), 3).code, 0);
    for (int64_t i = 0; i < expected.num_elements(); ++i)
      ASSERT_EQ(arguments.back().element_as_double(i), expected.element_as_double(i)) << i;
  }
}

TEST(GenericChoicesText, NothingIsChosenWhereAllPlacesAreInside) {
  Expr width;
  const TermVars vars = one_dim(width);
  const std::string text = te::print(loops_of({vars, split_nests(pairs(width, false)).nests[0]}, 8).function);
  const size_t other = text.rfind("} else");
  ASSERT_NE(other, std::string::npos);
  EXPECT_EQ(text.substr(0, other).find("select("), std::string::npos);
  EXPECT_NE(text.find("select(", other), std::string::npos);
}

TEST(ChoiceFinder, WhatASumReadsIsANestOfItsOwn) {
  Expr width;
  const TermVars vars = one_dim(width);
  const te::Program program = pairs(width, true);
  const Nests nests = split_nests(program);
  ASSERT_EQ(nests.nests.size(), 2U);
  EXPECT_EQ(nests.nests[0].places.size(), 2U);
  EXPECT_TRUE(nests.nests[1].places.empty());
  const ChoiceFinder choices(program);
  for (const Tensor& stage : te::stages_of(program)) {
    EXPECT_FALSE(choices.is_put_in_place(*stage)) << stage->name;
    EXPECT_EQ(choices.of(*stage).size(), stage->name == "both" ? 1U : 0U) << stage->name;
  }
}

/// A place that only data or another axis tell is no known one; nor are more places than registers hold.
TEST(ChoiceFinder, OnlyKnownPlacesAreComputedWhereTheyAreRead) {
  const Tensor x = te::placeholder("x", DType::kFloat32, Shape{4, 3});
  const auto chosen = [&](int64_t places) {
    return te::compute("chosen", Shape{4, places}, [&](const auto& at) {
      std::vector<Expr> values;
      for (int64_t i = 0; i < places; ++i)
        values.push_back(te::read(x, {at[0], Expr(i % 3)}) *
                         te::float_imm(DType::kFloat32, static_cast<double>(i)));
      return pick(at[1], values);
    });
  };
  const auto is_put = [&](const Tensor& stage, int64_t step) {
    const Tensor out = te::compute("out", Shape{4, 3}, [&](const auto& at) {
      return te::read(stage, {at[0], step == 1 ? at[1] : at[1] * Expr(step)});
    });
    const te::Program program{{x}, {out}};
    return ChoiceFinder(program).is_put_in_place(*stage);
  };
  EXPECT_TRUE(is_put(chosen(3), 1));
  EXPECT_FALSE(is_put(chosen(6), 2));
  EXPECT_FALSE(is_put(chosen(65), 1));
}

}  // namespace
}  // namespace tensormill::plan::generic_nests
