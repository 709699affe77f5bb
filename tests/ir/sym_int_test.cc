/// Symbolic integers: arithmetic with hints, decisions by proof or guard, demands that move hints, shapes.
#include "compiler/ir/sym_int.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "compiler/ir/graph.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/sym_evaluate.h"
#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/extents/extent_functions.h"
#include "tests/expect_error.h"

namespace tensormill::ir {
namespace {

class SymInts : public testing::Test {
protected:
  const std::shared_ptr<SymbolTable> table_ = std::make_shared<SymbolTable>();
  const SymInt n_ = table_->add("N", 3), h_ = table_->add("H", 224);

  std::vector<std::string> guards() const {
    std::vector<std::string> texts;
    for (const Guard& guard : table_->guards()) texts.push_back(to_string(guard));
    return texts;
  }
  using Texts = std::vector<std::string>;
};

TEST_F(SymInts, ArithmeticIsOnExpressionsAndHints) {
  const SymInt half = (h_ + 1) / 2;
  EXPECT_EQ(half.hint(), 112);
  EXPECT_EQ(to_string(half), "(H + 1)//2");
  EXPECT_EQ((h_ - h_ + 4).hint(), 4);
  EXPECT_TRUE((h_ - h_ + 4).is_constant());
  EXPECT_TRUE(same(n_ * h_, h_ * n_));
  EXPECT_EQ((h_ % 100).hint(), 24);
  EXPECT_EQ(ceildiv(h_, 100).hint(), 3);
  EXPECT_EQ(max(n_, 5).hint(), 5);
  EXPECT_EQ(guards(), Texts{}) << "extents are at least 1, so that nothing of this had to be asked";
}

TEST_F(SymInts, WhatIsProvenIsNoGuard) {
  EXPECT_TRUE(h_ + 1 > h_);
  EXPECT_TRUE(n_ >= 0);
  EXPECT_EQ(min(n_, n_ + 2).hint(), 3);
  EXPECT_FALSE(is_proven(Relation::kEqual, n_, 0)) << "nor that it is none";
  EXPECT_EQ(guards(), Texts{});
}

TEST_F(SymInts, WhatFollowsFromThereBeingElementsIsAGuard) {
  EXPECT_EQ(to_string(max(n_ - 1, 0)), "max(N, 1) - 1") << "nothing is concluded from N >= 1";
  EXPECT_FALSE(n_ == 0);
  EXPECT_TRUE(n_ >= 1) << "follows from the guard";
  EXPECT_TRUE(is_proven(Relation::kLessEqual, 1, n_ * h_)) << "is one more, of H";
  EXPECT_EQ(guards(), (Texts{"N != 0", "1 <= H*N"}));
}

TEST_F(SymInts, WhatIsDecidedAtTheHintIsAGuardOnce) {
  EXPECT_FALSE(n_ == h_);
  EXPECT_FALSE(n_ == h_);
  EXPECT_TRUE(n_ < 10);
  EXPECT_TRUE(n_ < 11) << "follows from the guard before";
  EXPECT_EQ(guards(), (Texts{"N != H", "N < 10"}));
}

TEST_F(SymInts, WhereOnlyProofsCountAnUnknownEqualityIsNoneAndNoGuard) {
  {
    const SymbolTable::ProofsOnly proofs_only(table_.get());
    EXPECT_FALSE(n_ == 3);
    EXPECT_TRUE(n_ != 3);
    EXPECT_TRUE(n_ * h_ == h_ * n_);
    EXPECT_EQ(guards(), Texts{});
    EXPECT_EQ(int64_t{n_}, 3) << "who takes the number holds to it";
    EXPECT_EQ(guards(), Texts{"N == 3"});
  }
  EXPECT_FALSE(h_ == 3);
  EXPECT_EQ(guards(), (Texts{"N == 3", "H != 3"}));
}

TEST_F(SymInts, AnIntegerOfItIsTheGuardThatItIsOne) {
  const int64_t extent = h_;
  EXPECT_EQ(extent, 224);
  EXPECT_TRUE(h_ == 224);
  EXPECT_EQ(guards(), Texts{"H == 224"});
}

TEST_F(SymInts, DemandsMoveTheHints) {
  EXPECT_TRUE(demand(Relation::kEqual, n_, h_)) << "two symbols may be equal";
  EXPECT_EQ(n_.hint(), h_.hint());
  EXPECT_TRUE(demand(Relation::kLessEqual, 1000, h_));
  EXPECT_GE(h_.hint(), 1000);
  EXPECT_TRUE(demand_divisible(h_, 48));
  EXPECT_EQ(h_.hint() % 48, 0);
  EXPECT_FALSE(demand(Relation::kLessEqual, h_, 0)) << "no extent is 0";
  EXPECT_FALSE(table_->has_strayed());
}

TEST_F(SymInts, HintsThatMoveBeyondWhatWasDecidedAreTold) {
  EXPECT_TRUE(h_ < 300);
  EXPECT_TRUE(demand(Relation::kEqual, n_, h_ * 4));
  EXPECT_FALSE(table_->has_strayed());
  EXPECT_FALSE(demand(Relation::kLessEqual, 400, h_)) << "the guard before says less";
}

TEST_F(SymInts, ShapesBroadcastAndCount) {
  const SymShape a{n_, 1, h_}, b{7, 1};
  EXPECT_EQ(to_string(broadcast_shapes(a, b)), "[N,7,H]");
  EXPECT_EQ(to_string(num_elements(SymShape{n_, 4, h_})), "4*H*N");
  EXPECT_EQ(to_string(row_major_strides(SymShape{2, n_, h_})), "[H*N,H,1]");
  EXPECT_EQ(guards(), Texts{});
  EXPECT_EQ(to_string(broadcast_shapes({n_}, {h_})), "[N]");
  EXPECT_EQ(guards(), Texts{"N == H"});
  expect_error(ErrorCode::kInvalidModel, "do not broadcast",
               [] { broadcast_shapes(SymShape{3}, SymShape{4}); });
}

/// What was one number for all runs: a run may broadcast it.
TEST_F(SymInts, BesideANumberAnExtentIsThatOrOne) {
  EXPECT_EQ(to_string(broadcast_shapes({h_}, {n_ * 0 + 7})), "[7]");
  EXPECT_EQ(h_.hint(), 7) << "where there is something to broadcast to";
  ASSERT_FALSE(guards().empty());
  const auto holds_at = [&](int64_t extent) {
    return std::all_of(table_->guards().begin(), table_->guards().end(), [&](const Guard& guard) {
      return guard.demanded && ir::holds_at(guard, {{"H", extent}, {"N", 3}});
    });
  };
  for (const int64_t extent : {0, 1, 2, 3, 6, 7, 8, 100})
    EXPECT_EQ(holds_at(extent), extent == 1 || extent == 7) << extent;
  EXPECT_EQ(to_string(broadcast_shapes({2}, {n_ + 1})), "[2]") << "is more than 1";
  EXPECT_EQ(guards().back(), "2 == N + 1");
}

TEST_F(SymInts, GraphsOfThemAreReadAsTheyArePrinted) {
  Graph graph(ops::standard_ops());
  graph.set_name("net");
  graph.set_symbols(table_);
  const ValueId x = graph.add_input("x", {DType::kFloat32, {n_, 3, h_}});
  const ValueId rows = graph.add_node("reshape", {x}, {{"shape", SymShape{n_ * 3, h_}}})[0];
  const ValueId part = graph.add_node("slice", {rows},
                                      {{"starts", SymShape{0, 1}},
                                       {"extents", SymShape{n_ * 3, ceildiv(h_ - 1, 2)}},
                                       {"steps", Shape{1, 2}}})[0];
  graph.set_outputs({part});
  EXPECT_EQ(to_string(graph.value(part).type), "f32[3*N,H//2]");
  const std::string text = print(graph);
  EXPECT_EQ(print(parse_graph(text, ops::standard_ops())), text);
  EXPECT_NE(text.find("dims(H: 224, N: 3)"), std::string::npos) << text;
}

TEST_F(SymInts, ShapeArithmeticKeepsExpressions) {
  Graph graph(ops::standard_ops());
  graph.set_symbols(table_);
  const ValueId extents = graph.add_node("extents", {}, {{"values", SymShape{n_, h_}}})[0];
  const ValueId two = graph.add_constant("two", Tensor::from<int64_t>({1}, std::vector<int64_t>{2}));
  const ValueId at = graph.add_constant("at", Tensor::from<int64_t>({1}, std::vector<int64_t>{1}));
  const ValueId height = graph.add_node("gather", {extents, at}, {{"axis", int64_t{0}}})[0];
  const ValueId halved = graph.add_node("div", {height, two})[0];
  EXPECT_EQ(to_string(graph.value(halved).known.elements()), "[H//2]");
  EXPECT_EQ((*graph.value(halved).known).element_as_int(0), 112) << "of a number, with a guard";
  EXPECT_EQ(guards(), Texts{"H//2 == 112"});
}

/// Sizes that are made of floats: exact, though no polynomial.
TEST_F(SymInts, ShapeArithmeticGoesThroughFloats) {
  struct Operand {
    KnownValue value;
    DType dtype;
  };
  const auto apply = [](const char* op, const std::vector<Operand>& operands, DType to,
                        const Attrs& attrs = {}) {
    std::vector<const KnownValue*> inputs;
    std::vector<ValueType> types;
    for (const Operand& operand : operands) {
      inputs.push_back(&operand.value);
      types.push_back({operand.dtype, {1}});
    }
    const OpDef& def = ops::standard_ops().get(op);
    auto results = evaluate_symbolic(def, attrs, inputs, types, {{to, {1}}}, Undecided::kGuarded);
    return Operand{results.value().at(0), to};
  };
  const auto number = [](float value) {
    return Operand{Tensor::from<float>({1}, std::vector<float>{value}), DType::kFloat32};
  };
  const auto as_float = [&](const SymInt& value) {
    const Operand integer{KnownValue(DType::kInt64, {1}, SymShape{value}), DType::kInt64};
    return apply("cast", {integer}, DType::kFloat32, {{"to", DType::kFloat32}});
  };
  const auto as_int = [&](const Operand& value) {
    return to_string(apply("cast", {value}, DType::kInt64, {{"to", DType::kInt64}}).value.elements());
  };
  const Operand height = as_float(h_), rows = as_float(n_);
  const Operand part = apply("mul", {height, number(0.7F)}, DType::kFloat32);
  EXPECT_EQ(as_int(apply("floor", {part}, DType::kFloat32)), "[scaled(H, 0.7f)]");
  const Operand ratio = apply("div", {rows, height}, DType::kFloat32);
  EXPECT_EQ(as_int(apply("mul", {height, ratio}, DType::kFloat32)), "[scaled_by_ratio(H, N, H)]");
  const Operand parts = apply("div", {height, number(32)}, DType::kFloat32);
  EXPECT_EQ(as_int(apply("ceil", {parts}, DType::kFloat32)),
            "[f32_to_int(f32_ceil(f32_div(f32_of(H), 1107296256)))]");
  EXPECT_EQ(part.value.elements()[0].hint(), float_code(224 * 0.7F)) << "at the hint as well";
}

TEST_F(SymInts, ALeastThatIsOneOfItsOperandsSaysSoOfTheOthers) {
  const SymInt p = table_->add("P", 5), rows = n_ + p;
  EXPECT_TRUE(demand(Relation::kEqual, min(rows, 64), rows));
  EXPECT_TRUE(is_proven(Relation::kLessEqual, rows, 64));
  EXPECT_TRUE(is_proven(Relation::kEqual, min(rows, 70), rows));
  EXPECT_TRUE(demand(Relation::kEqual, max(h_, 8), h_));
  EXPECT_TRUE(is_proven(Relation::kLessEqual, 8, h_));
}

/// Minima and maxima of lists begin with the limits of integers, to which there is no difference.
TEST_F(SymInts, LimitsOfIntegersAreOnTheirSideOfEveryExtent) {
  EXPECT_TRUE(same(min(std::numeric_limits<int64_t>::max(), n_), n_));
  EXPECT_TRUE(same(max(n_, std::numeric_limits<int64_t>::min()), n_));
  EXPECT_TRUE(table_->guards().empty());
}

TEST_F(SymInts, HintsOfAnyMoveFromNothing) {
  const SymInt k = table_->add("K", 0, 0);
  EXPECT_TRUE(demand(Relation::kLess, n_ + 4, min(k, 10) + min(h_, 2)));
  EXPECT_GE(k.hint(), 6);
  EXPECT_EQ(n_.hint(), 3);
  EXPECT_FALSE(table_->has_strayed());
}

TEST_F(SymInts, HintsMoveTogetherWhereOneAloneDoesNotDo) {
  const SymInt w = table_->add("W", 160);
  // Rows [H, H + W) of a table of 64: both are too large.
  EXPECT_TRUE(demand(Relation::kEqual, min(h_ + w, 64) - min(h_, 64), w));
  EXPECT_LE(h_.hint() + w.hint(), 64);
  EXPECT_NE(h_.hint(), w.hint());
  EXPECT_FALSE(table_->has_strayed());
}

}  // namespace
}  // namespace tensormill::ir
