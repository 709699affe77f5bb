/// Patches: replacements, order, names, and what they refuse.
#include "compiler/ir/patch.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "tests/ir/support.h"

namespace tensormill::ir {
namespace {

constexpr std::string_view kChain = R"(graph "chain" (%x: f32[2]) {
  %a: f32[2] = neg(%x) from ["n0"]
  %b: f32[2] = abs(%a) from ["n1"]
  %c: f32[2] = tanh(%b) from ["n2"]
  return %c, %a
}
)";

ValueId named(const Graph& graph, std::string_view name) { return graph.find_value(name).value(); }

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes()) ops.push_back(node.op);
  return ops;
}

TEST(Patch, NothingReplacedChangesNothing) {
  const Graph graph = graph_of(kChain);
  const Patch patch(graph, "none");
  EXPECT_TRUE(patch.empty());
  EXPECT_EQ(print(patch.apply()), print(graph));
}

TEST(Patch, AReplacementStandsWhereItsValueStood) {
  const Graph graph = graph_of(kChain);
  Patch patch(graph, "abs to relu");
  patch.replace(named(graph, "b"), patch.add_node("relu", {named(graph, "a")}, {}, {"n1"})[0]);
  const Graph result = patch.apply();
  EXPECT_EQ(ops_of(result), (std::vector<std::string>{"neg", "relu", "tanh"}));
  EXPECT_NO_THROW(verify(result));
  EXPECT_EQ(result.nodes()[2].inputs[0], result.nodes()[1].outputs[0]);
}

TEST(Patch, NewNodesKeepReadingWhatTheyReplace) {
  // b is replaced by sigmoid(b): the new node reads the old b, its readers read the new one.
  const Graph graph = graph_of(kChain);
  Patch patch(graph, "wrap");
  const ValueId b = named(graph, "b");
  patch.replace(b, patch.add_node("sigmoid", {b})[0]);
  EXPECT_EQ(ops_of(patch.apply()), (std::vector<std::string>{"neg", "abs", "sigmoid", "tanh"}));
}

TEST(Patch, ReplacementsOfReplacementsAreFollowed) {
  const Graph graph = graph_of(kChain);
  Patch patch(graph, "twice");
  patch.replace(named(graph, "b"), named(graph, "a"));
  // c is added after a replaced b: it reads a at once.
  const ValueId c = patch.add_node("tanh", {named(graph, "b")})[0];
  patch.replace(named(graph, "a"), named(graph, "x"));
  patch.replace(named(graph, "c"), c);
  const Graph result = patch.apply();
  EXPECT_EQ(ops_of(result), (std::vector<std::string>{"neg", "tanh"}));
  EXPECT_EQ(result.outputs()[1], result.inputs()[0]) << "the second output is the input now";
}

TEST(Patch, OutputsKeepTheirNames) {
  const Graph graph = graph_of(kChain);
  Patch patch(graph, "rename");
  patch.replace(named(graph, "c"), patch.add_node("relu", {named(graph, "b")})[0]);
  const Graph result = patch.apply();
  EXPECT_EQ(result.value(result.outputs()[0]).name, "c");
  EXPECT_EQ(result.value(result.outputs()[1]).name, "a");
  EXPECT_EQ(result.value(result.inputs()[0]).name, "x");
}

TEST(Patch, WhatNobodyNeedsGoes) {
  const Graph graph = graph_of(kChain);
  Patch patch(graph, "to constant");
  Tensor two = Tensor::zeros(DType::kFloat32, {2});
  patch.replace(named(graph, "c"), patch.add_constant("two", two));
  patch.add_constant("unused", two);
  const Graph result = patch.apply();
  EXPECT_EQ(ops_of(result), std::vector<std::string>{"neg"});
  EXPECT_TRUE(result.value(result.outputs()[0]).constant.has_value());
  EXPECT_FALSE(result.find_value("unused").has_value());
}

TEST(Patch, OtherTypesAndCyclesAreBugs) {
  const Graph graph = graph_of(kChain);
  Patch types(graph, "my_rule");
  const ValueId wide = types.add_node("cast", {named(graph, "b")}, {{"to", DType::kFloat64}})[0];
  try {
    types.replace(named(graph, "b"), wide);
    FAIL() << "accepted";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("my_rule"), testing::HasSubstr("f64[2]")));
  }
  EXPECT_THROW(types.replace(wide, named(graph, "b")), InternalError) << "a value of the patch itself";
  Patch cycle(graph, "cycle");
  cycle.replace(named(graph, "a"), named(graph, "c"));
  EXPECT_THROW(cycle.apply(), InternalError);
  Patch swap(graph, "swap");
  swap.replace(named(graph, "a"), named(graph, "b"));
  swap.replace(named(graph, "b"), named(graph, "a"));
  EXPECT_THROW(swap.apply(), InternalError);
}

TEST(Patch, LongChainsNeedNoDeepStack) {
  constexpr int kLength = 100000;
  Graph graph(ops::standard_ops());
  ValueId last = graph.add_input("x", {DType::kFloat32, {1}});
  graph.set_outputs({graph.add_node("neg", {last})[0]});
  Patch patch(graph, "grow");
  for (int i = 0; i < kLength; ++i) last = patch.add_node("abs", {last})[0];
  patch.replace(graph.outputs()[0], last);
  EXPECT_EQ(patch.apply().nodes().size(), static_cast<size_t>(kLength));
}

}  // namespace
}  // namespace tensormill::ir
