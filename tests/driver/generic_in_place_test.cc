/// Which inputs the output of a generic nest may overwrite: computed in place, results stay the same.
#include <gtest/gtest.h>

#include "compiler/plan/generic_epilogue.h"
#include "compiler/plan/in_place.h"
#include "compiler/te/interpret.h"
#include "tests/driver/generic_nests.h"

namespace tensormill::plan::generic_nests {
namespace {

using Body = Expr (*)(const Tensor& x, const std::vector<Expr>& at, const Expr& width);

/// `body` of x [W, 16].
Nest elementwise_nest(TermVars& vars, Body body) {
  const Expr width = vars.expr({0, {{1, {{0, 1, 0, 1}}}}});
  const Tensor x = te::placeholder("x", DType::kFloat32, {width, Expr(16)});
  const Tensor out =
      te::compute("out", {width, Expr(16)}, [&](const auto& at) { return body(x, at, width); });
  return split_nests({{x}, {out}}).nests.at(0);
}

TEST(GenericInPlace, ReadsAtTheElementsOwnPlace) {
  TermVars vars(1);
  const Nest own = elementwise_nest(vars, [](const Tensor& x, const std::vector<Expr>& at, const Expr&) {
    return te::read(x, {at[0], at[1]}) * te::read(x, {at[0], at[1]});
  });
  EXPECT_EQ(find_in_place(own), std::vector<size_t>{0});
  EXPECT_EQ(build_generic_loops(own, vars, LoopFacts{8}).aliases, (std::vector<int>{0, 0}));
}

TEST(GenericInPlace, NotReadsOfOtherPlaces) {
  TermVars vars(1);
  const Nest turned =
      elementwise_nest(vars, [](const Tensor& x, const std::vector<Expr>& at, const Expr& width) {
        return te::read(x, {width - Expr(1) - at[0], at[1]}) + te::read(x, {at[0], at[1]});
      });
  EXPECT_TRUE(find_in_place(turned).empty());
  EXPECT_TRUE(build_generic_loops(turned, vars, LoopFacts{8}).aliases.empty());
}

/// Sums of y along its rows, of which one is added to each element of x.
TEST(GenericInPlace, WhatIsAddedToASumButNotWhatIsSummed) {
  TermVars vars(1);
  const Expr width = vars.expr({0, {{1, {{0, 1, 0, 1}}}}});
  const Tensor x = te::placeholder("x", DType::kFloat32, {width, Expr(16)});
  const Tensor y = te::placeholder("y", DType::kFloat32, {width, Expr(16)});
  const Tensor sum = te::reduce("sum", te::ReduceOp::kSum, {width, Expr(16)}, {Expr(16)},
                                [&](const auto& at, const auto& k) {
                                  return te::read(y, {at[0], k[0]});
                                });
  const Tensor out = te::compute("out", {width, Expr(16)}, [&](const auto& at) {
    return te::read(sum, {at[0], at[1]}) + te::read(x, {at[0], at[1]});
  });
  const Nests nests = split_nests({{x, y}, {out}});
  ASSERT_EQ(nests.nests.size(), 2U);
  size_t place = 0;
  while (nests.nests[1].sources[place].is_input) ++place;
  const std::optional<Nest> both = with_epilogue(nests.nests[0], nests.nests[1], place);
  ASSERT_TRUE(both);
  const std::vector<size_t> in_place = find_in_place(*both);
  ASSERT_EQ(in_place.size(), 1U);
  EXPECT_EQ(both->sources[in_place[0]], (NestSource{true, 0, 0}));
}

}  // namespace
}  // namespace tensormill::plan::generic_nests
