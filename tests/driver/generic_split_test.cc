/// Which stages of a program are nests of their own, and which sum takes what is computed of it.
#include <gtest/gtest.h>

#include <functional>

#include "compiler/plan/generic_epilogue.h"
#include "tests/driver/generic_nests.h"

namespace tensormill::plan::generic_nests {
namespace {

using Index = std::vector<Expr>;

/// Elements of x [4, 6], changed by `change`, and their sums over rows: the elements over the sums.
size_t nests_of_shares(const std::function<Expr(const Expr&)>& change) {
  const Tensor x = te::placeholder("x", DType::kFloat32, Shape{4, 6});
  const Tensor changed =
      te::compute("changed", Shape{4, 6}, [&](const Index& at) { return change(te::read(x, at)); });
  const Tensor sums =
      te::reduce("sums", te::ReduceOp::kSum, Shape{4}, Shape{6}, [&](const Index& at, const Index& k) {
        return te::read(changed, {at[0], k[0]});
      });
  const Tensor out = te::compute(
      "out", Shape{4, 6}, [&](const Index& at) { return te::read(changed, at) / te::read(sums, {at[0]}); });
  return split_nests({{x}, {out}}).nests.size();
}

TEST(GenericSplit, FunctionsThatSeveralReadAreComputedOnce) {
  const Expr one = te::float_imm(DType::kFloat32, 1);
  EXPECT_EQ(nests_of_shares([&](const Expr& value) { return value - one; }), 2U);
  EXPECT_EQ(nests_of_shares([&](const Expr& value) { return te::make(te::ExprOp::kExp, {value - one}); }),
            3U);
  EXPECT_EQ(nests_of_shares([&](const Expr& value) { return (value - one) * (value + one) + value; }), 3U);
}

/// q [3, 8] by rows of k [5, 8]: scores [3, 5], with a stage between that has k as `copy` says.
size_t nests_of_scores(const Shape& shape, const std::function<Expr(const Tensor& k, const Index& at)>& copy,
                       const std::function<Index(const Expr& row, const Expr& d)>& place) {
  const Tensor q = te::placeholder("q", DType::kFloat32, Shape{3, 8});
  const Tensor k = te::placeholder("k", DType::kFloat32, Shape{5, 8});
  const Tensor keys = te::compute("keys", shape, [&](const Index& at) { return copy(k, at); });
  const Tensor scores =
      te::reduce("scores", te::ReduceOp::kSum, Shape{3, 5}, Shape{8}, [&](const Index& at, const Index& d) {
        return te::read(q, {at[0], d[0]}) * te::read(keys, place(at[1], d[0]));
      });
  return split_nests({{q, k}, {scores}}).nests.size();
}

TEST(GenericSplit, WhatLiesApartIsCopiedOnceForTheVectorsOfASum) {
  const auto transposed = [](const Tensor& k, const Index& at) { return te::read(k, {at[1], at[0]}); };
  const auto same = [](const Tensor& k, const Index& at) { return te::read(k, at); };
  const auto by_column = [](const Expr& row, const Expr& d) { return Index{d, row}; };
  const auto by_row = [](const Expr& row, const Expr& d) { return Index{row, d}; };
  EXPECT_EQ(nests_of_scores({8, 5}, transposed, by_column), 2U);
  EXPECT_EQ(nests_of_scores({5, 8}, same, by_row), 1U);
  const auto halved = [](const Tensor& k, const Index& at) {
    return te::cast(DType::kFloat32, te::cast(DType::kFloat16, te::read(k, {at[1], at[0]})));
  };
  EXPECT_EQ(nests_of_scores({8, 5}, halved, by_column), 1U) << "is more than a copy";
}

/// A quotient of two sums is stored where the first one is: the other has no such elements, whichever of them
/// comes last.
TEST(GenericSplit, AQuotientIsComputedInTheLoopsOfTheSumThatHasItsElements) {
  const Tensor p = te::placeholder("p", DType::kFloat32, Shape{3, 5});
  const Tensor v = te::placeholder("v", DType::kFloat32, Shape{5, 8});
  const Tensor mix =
      te::reduce("mix", te::ReduceOp::kSum, Shape{3, 8}, Shape{5}, [&](const Index& at, const Index& t) {
        return te::read(p, {at[0], t[0]}) * te::read(v, {t[0], at[1]});
      });
  const Tensor sums =
      te::reduce("sums", te::ReduceOp::kSum, Shape{3}, Shape{5}, [&](const Index& at, const Index& t) {
        return te::read(p, {at[0], t[0]});
      });
  for (const bool mix_first : {true, false}) {
    const Tensor out = te::compute("out", Shape{3, 8}, [&](const Index& at) {
      const Expr part = te::read(mix, at), whole = te::read(sums, {at[0]});
      return mix_first ? part / whole : te::float_imm(DType::kFloat32, 1) / whole * part;
    });
    const Nests nests = split_nests({{p, v}, {out}});
    ASSERT_EQ(nests.nests.size(), 3U);
    const std::optional<size_t> sum = sum_before(nests, 2);
    ASSERT_TRUE(sum);
    EXPECT_EQ(nests.nests[*sum].tensor->name, "mix");
  }
}

}  // namespace
}  // namespace tensormill::plan::generic_nests
