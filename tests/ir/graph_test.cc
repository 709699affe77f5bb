/// Graphs as values: names, uses, types from the rules, known values, the verifier, dead code.
#include <gmock/gmock.h>

#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "runtime/base/error.h"
#include "tests/ir/support.h"

namespace tensormill::ir {
namespace {

using Ints = std::vector<int64_t>;

Tensor ints(const Ints& values) {
  Tensor tensor(DType::kInt64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.set_element_int(static_cast<int64_t>(i), values[i]);
  return tensor;
}

Ints known_ints(const Graph& graph, ValueId id) {
  Ints values;
  const KnownValue& known = graph.value(id).known;
  if (!known) return {-999};
  for (int64_t i = 0; i < known->num_elements(); ++i) values.push_back(known->element_as_int(i));
  return values;
}

TEST(Graph, NamesAreUniqueAndFound) {
  Graph graph(ops::standard_ops());
  const ValueId x = graph.add_input("x", {DType::kFloat32, {2}});
  const ValueId y = graph.add_node("neg", {x}, {}, {}, {"x"})[0];
  EXPECT_NE(graph.value(y).name, "x");
  EXPECT_EQ(graph.find_value("x"), x);
  EXPECT_EQ(graph.find_value(graph.value(y).name), y);
  EXPECT_FALSE(graph.find_value("z").has_value());
  graph.rename_value(y, "z");
  EXPECT_EQ(graph.find_value("z"), y);
  EXPECT_THROW(graph.rename_value(y, "x"), InternalError);
  EXPECT_THROW(graph.add_input("x", {DType::kFloat32, {2}}), InternalError);
}

TEST(Graph, ReferencesStayValidWhileNodesAreAdded) {
  Graph graph(ops::standard_ops());
  const ValueId x = graph.add_input("x", {DType::kFloat32, {2, 3}});
  ValueId y = graph.add_node("neg", {x})[0];
  const Value& value = graph.value(x);
  const SymShape& shape = graph.value(x).type.shape;
  const Node& node = graph.node(0);
  for (int i = 0; i < 1000; ++i) y = graph.add_node("neg", {y})[0];
  EXPECT_EQ(&value, &graph.value(x));
  EXPECT_EQ(&node, &graph.node(0));
  EXPECT_TRUE(same(shape, {2, 3}));
}

TEST(Graph, UsesNameEachReaderOnce) {
  const Graph graph = graph_of(R"(graph "g" (%x: f32[2]) {
  %y: f32[2] = mul(%x, %x)
  %z: f32[2] = add(%y, %x)
  return %z, %y
}
)");
  EXPECT_EQ(graph.uses()[0], (std::vector<NodeId>{0, 1}));
  EXPECT_EQ(graph.uses()[static_cast<size_t>(*graph.find_value("y"))], std::vector<NodeId>{1});
  EXPECT_TRUE(graph.uses()[static_cast<size_t>(*graph.find_value("z"))].empty());
}

TEST(Graph, TypesComeFromTheRuleAndErrorsNameTheNode) {
  Graph graph(ops::standard_ops());
  const ValueId a = graph.add_input("a", {DType::kFloat32, {2, 3}});
  const ValueId b = graph.add_input("b", {DType::kFloat32, {4, 5}});
  EXPECT_EQ(to_string(graph.value(graph.add_node("transpose", {a})[0]).type), "f32[3,2]");
  try {
    graph.add_node("matmul", {a, b}, {}, {"fc/MatMul"});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidModel);
    EXPECT_THAT(error.message(), testing::StartsWith("matmul \"fc/MatMul\""));
    EXPECT_THAT(error.message(), testing::AllOf(testing::HasSubstr("3"), testing::HasSubstr("4")));
  }
  EXPECT_THROW(graph.add_node("matmul", {a}), InternalError) << "the number of inputs";
  EXPECT_THROW(graph.add_node("no_such_operator", {a}), InternalError);
  EXPECT_THROW(graph.add_node("neg", {99}), InternalError);
}

TEST(KnownValues, ShapeArithmeticIsKnownWhileTheGraphIsBuilt) {
  Graph graph(ops::standard_ops());
  const ValueId shape = graph.add_constant("shape", ints({2, 3, 5}));
  const ValueId index = graph.add_constant("index", ints({2}));
  const ValueId last = graph.add_node("gather", {shape, index}, {{"axis", int64_t{0}}})[0];
  const ValueId twice = graph.add_node("mul", {last, last})[0];
  const ValueId both = graph.add_node("concat", {twice, index}, {{"axis", int64_t{0}}})[0];
  EXPECT_EQ(known_ints(graph, both), (Ints{25, 2}));
  const ValueId real = graph.add_node("cast", {both}, {{"to", DType::kFloat32}})[0];
  EXPECT_FALSE(graph.value(real).known) << "floats are not shapes";
  const ValueId x = graph.add_input("x", {DType::kInt64, {2}});
  EXPECT_FALSE(graph.value(graph.add_node("add", {x, both})[0]).known);
}

TEST(KnownValues, RefusedDataAndLargeTensorsAreNotKnown) {
  Graph graph(ops::standard_ops());
  const ValueId shape = graph.add_constant("shape", ints({2, 3}));
  const ValueId far = graph.add_constant("far", ints({7}));
  const ValueId gathered = graph.add_node("gather", {shape, far}, {{"axis", int64_t{0}}})[0];
  EXPECT_FALSE(graph.value(gathered).known) << "the index is out of range when the model runs";
  const ValueId most = graph.add_node("tile", {shape}, {{"repeats", Ints{kMaxKnownElements / 2}}})[0];
  EXPECT_TRUE(graph.value(most).known);
  const ValueId more = graph.add_node("tile", {shape}, {{"repeats", Ints{kMaxKnownElements / 2 + 1}}})[0];
  EXPECT_FALSE(graph.value(more).known);
}

TEST(Verify, ARegionThatDoesNotFitIsFound) {
  const auto region = std::make_shared<Graph>(
      graph_of("graph \"r\" (%p: f32[4]) {\n  %q: f32[4] = neg(%p)\n  return %q\n}\n"));
  Graph right(ops::standard_ops());
  right.set_outputs(right.add_fused({right.add_input("x", {DType::kFloat32, {4}})}, region, {}));
  EXPECT_NO_THROW(verify(right));
  Graph wrong(ops::standard_ops());
  wrong.set_outputs(wrong.add_fused({wrong.add_input("x", {DType::kFloat32, {5}})}, region, {"node7"}));
  try {
    verify(wrong);
    FAIL() << "accepted";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("node7"));
  }
  Graph outside(ops::standard_ops());
  outside.set_outputs({3});
  EXPECT_THROW(verify(outside), InternalError);
}

TEST(RemoveDead, KeepsInputsNamesAndWhatOutputsNeed) {
  const Graph graph = graph_of(R"(graph "g" (%x: f32[2], %unused: f32[3]) {
  %c = const f32[] {1.0}
  %d = const f32[] {2.0}
  %dead: f32[2] = mul(%x, %d)
  %y: f32[2] = add(%x, %c) from ["add"]
  %deader: f32[2] = neg(%dead)
  return %y
}
)");
  EXPECT_EQ(print(remove_dead(graph)), reprinted(R"(graph "g" (%x: f32[2], %unused: f32[3]) {
  %c = const f32[] {1.0}
  %y: f32[2] = add(%x, %c) from ["add"]
  return %y
}
)"));
}

TEST(Evaluate, RegionsAndDoubleRunsAgreeWithTheOperators) {
  const Graph graph = graph_of(R"(graph "g" (%x: f32[3]) {
  %y: f32[3] = fused(%x) (%p: f32[3]) {
    %t: f32[3] = mul(%p, %p)
    %u: f32[3] = neg(%t)
    return %u
  }
  return %y
}
)");
  Tensor x(DType::kFloat32, {3});
  for (int64_t i = 0; i < 3; ++i) x.set_element(i, 0.1 * static_cast<double>(i + 1));
  const Tensor single = evaluate_reference(graph, {x})[0];
  const Tensor wide = evaluate_reference(graph, {x}, true)[0];
  EXPECT_EQ(single.dtype(), DType::kFloat32);
  EXPECT_EQ(wide.dtype(), DType::kFloat64);
  for (int64_t i = 0; i < 3; ++i) {
    const double value = x.element_as_double(i);
    EXPECT_EQ(wide.element_as_double(i), -value * value);
    EXPECT_EQ(single.element_as_double(i), static_cast<double>(static_cast<float>(-value * value)));
  }
  EXPECT_THROW(evaluate_reference(graph, {}), InternalError);
  EXPECT_THROW(evaluate_reference(graph, {Tensor::zeros(DType::kFloat32, {4})}), InternalError);
}

}  // namespace
}  // namespace tensormill::ir
