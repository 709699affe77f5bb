/// What runs in which branch, in what order it stands, and the symbols that a branch has of its own.
#include "compiler/ir/branches.h"

#include <gmock/gmock.h>

#include "compiler/ir/branch_symbols.h"
#include "compiler/ir/loops.h"
#include "tests/ir/support.h"

namespace tensormill::ir {
namespace {

/// "e" and "n" are read in one branch each, "s" in the inner branch, "both" in either; the condition stands
/// last.
constexpr std::string_view kNestedBranches = R"(graph "nested" (%x: f32[2], %a: bool[1], %b: bool[1]) {
  %e: f32[2] = exp(%x)
  %n: f32[2] = neg(%x)
  %both: f32[2] = abs(%x)
  %t: f32[2] = add(%e, %both)
  %u: f32[2] = add(%n, %both)
  %s: f32[2] = sin(%t)
  %c: bool[1] = not(%a)
  %inner: f32[2] = choose(%b, %s, %t)
  %y: f32[2] = choose(%c, %inner, %u)
  return %y
}
)";

std::string side_text(const Graph& graph, const BranchChain& chain) {
  std::string text;
  for (const BranchSide& side : chain) text += (side.when ? " " : " !") + graph.value(side.condition).name;
  return text;
}

TEST(Branches, AreWhatAllUsesHaveInCommon) {
  const Graph graph = graph_of(kNestedBranches);
  const std::vector<BranchChain> chains = branches_around(graph);
  std::map<std::string, std::string> found;
  for (size_t i = 0; i < chains.size(); ++i)
    found[graph.value(graph.nodes()[i].outputs[0]).name] = side_text(graph, chains[i]);
  const std::map<std::string, std::string> expected = {{"e", " c"}, {"n", " !c"},    {"both", ""},
                                                       {"t", " c"}, {"u", " !c"},    {"s", " c b"},
                                                       {"c", ""},   {"inner", " c"}, {"y", ""}};
  EXPECT_EQ(found, expected);
}

TEST(Branches, StandBehindTheirCondition) {
  const Graph graph = graph_of(kNestedBranches);
  std::vector<std::string> names;
  for (const NodeId id : branch_order(graph)) names.push_back(graph.value(graph.node(id).outputs[0]).name);
  EXPECT_EQ(names, (std::vector<std::string>{"both", "c", "e", "t", "s", "inner", "n", "u", "y"}));
}

TEST(Branches, AreEvaluatedAsTheConditionsSay) {
  const Graph graph = graph_of(kNestedBranches);
  const std::vector<float> x = {1.5f, -2.0f};
  for (const int a : {0, 1}) {
    for (const int b : {0, 1}) {
      Tensor one(DType::kBool, {1}), other(DType::kBool, {1});
      one.set_element_int(0, a);
      other.set_element_int(0, b);
      const Tensor y = evaluate_reference(graph, {Tensor::from<float>({2}, x), one, other})[0];
      for (size_t i = 0; i < 2; ++i) {
        const double t = std::exp(static_cast<double>(x[i])) + std::abs(x[i]);
        const double expected = a != 0 ? -x[i] + std::abs(x[i]) : b != 0 ? std::sin(t) : t;
        EXPECT_NEAR(y.values<float>()[i], expected, 1e-5) << a << b;
      }
    }
  }
}

TEST(Branches, OfALoopsBodyAreInTheBody) {
  const Graph graph = graph_of(R"(graph "g" (%m: i64[1], %x: f32[2], %a: bool[1]) {
  %i: i64[], %t: f32[2] = loop_begin(%m, %x) {carried: 1, condition: 0, loop: 0, max_trips: 1}
  %e: f32[2] = exp(%x)
  %n: f32[2] = neg(%t)
  %k: i64[1] = reshape(%i) {shape: ints [1]}
  %z: i64[1] = const i64[1] {0}
  %c: bool[1] = equal(%k, %z)
  %v: f32[2] = choose(%c, %e, %n)
  %y: f32[2], %s: i64[1] = loop_end(%i, %v) {carried: 1, condition: 0, counted: 0, loop: 0, trips: 0}
  return %y
}
)");
  const std::vector<BranchChain> chains = branches_around(graph);
  const auto chain_of = [&](const char* name) {
    return side_text(graph,
                     chains[static_cast<size_t>(graph.value(graph.find_value(name).value()).producer)]);
  };
  EXPECT_EQ(chain_of("n"), " !c");
  EXPECT_EQ(chain_of("e"), "") << "it is made once, before the loop and so before the condition";
}

TEST(Branches, HaveSymbolsOfTheirOwn) {
  const auto table = std::make_shared<SymbolTable>();
  const SymInt n = table->add("N", 3), m = table->add("M", 5);
  EXPECT_TRUE(demand(Relation::kLessEqual, 2, n));
  const int64_t yes = add_branch(*table, kOutside), no = add_branch(*table, kOutside);
  const SymInt n_yes = inside(n, yes), m_yes = inside(m, yes), n_no = inside(n, no);
  EXPECT_EQ(to_string(n_yes + m_yes), "M.b0 + N.b0");
  EXPECT_TRUE(same(outside(n_yes * 2 + 1, yes), n * 2 + 1));
  EXPECT_TRUE(is_proven(Relation::kLessEqual, 2, n_no)) << "what held around it";
  EXPECT_TRUE(demand(Relation::kEqual, n_yes, m_yes));
  EXPECT_TRUE(demand(Relation::kEqual, n_no, 7));
  EXPECT_TRUE(is_proven(Relation::kEqual, n_yes, m_yes));
  EXPECT_FALSE(is_proven(Relation::kEqual, n, m)) << "where the branch is not taken";
  EXPECT_FALSE(is_proven(Relation::kEqual, n, 7));
  EXPECT_EQ(n.hint(), 3) << "hints of a branch move alone";
  EXPECT_EQ(n_no.hint(), 7);
  const int64_t inner = add_branch(*table, yes);
  EXPECT_TRUE(is_proven(Relation::kEqual, inside(n_yes, inner), inside(m_yes, inner)));
  EXPECT_EQ(to_string(seen_from(n + m, inner).value()), "M.b0.b2 + N.b0.b2");
  EXPECT_EQ(seen_from(n_no, inner), std::nullopt);
}

TEST(Branches, WhatMixesSymbolsIsNoFactOfEither) {
  const auto table = std::make_shared<SymbolTable>();
  const SymInt n = table->add("N", 3);
  const SymInt own = inside(n, add_branch(*table, kOutside));
  EXPECT_TRUE(demand(Relation::kEqual, own + 1, n + 1));
  EXPECT_TRUE(demand(Relation::kEqual, own, 3));
  EXPECT_FALSE(is_proven(Relation::kEqual, n, 3));
  EXPECT_EQ(branch_of(table->guards().front()), std::nullopt);
  EXPECT_EQ(branches_of(table->guards().front()), (std::set<int64_t>{0}));
  std::map<std::string, int64_t> values = {{"N", 8}};
  add_branch_values(*table, values);
  EXPECT_EQ(values, (std::map<std::string, int64_t>{{"N", 8}, {"N.b0", 8}}));
}

}  // namespace
}  // namespace tensormill::ir
