/// What the search for samples may cost.
#include "compiler/frontend/onnx/sample_budget.h"

#include <gtest/gtest.h>

#include "compiler/ops/ops.h"

namespace tensormill::frontend::onnx {
namespace {

ir::Graph graph_of(int64_t nodes) {
  ir::Graph graph(ops::standard_ops());
  ir::ValueId value = graph.add_input("x", {DType::kFloat32, {nodes}});
  for (int64_t i = 0; i < nodes; ++i) value = graph.add_node("relu", {value}, {}, {"relu"})[0];
  graph.set_outputs({value});
  return graph;
}

TEST(SampleBudget, EndsBySpentNodes) {
  SampleBudget budget(8);
  budget.begin();
  for (int i = 0; i < 1000; ++i) budget.spend(50);
  budget.check();
  for (int i = 0; i < 1000; ++i) budget.spend(50);
  EXPECT_THROW(budget.check(), SampleBudget::Spent);
  EXPECT_TRUE(budget.instead().samples.empty());
  budget.begin();
  budget.check();
}

TEST(SampleBudget, IsLargerForLargerModels) {
  SampleBudget of_model(1000), of_graphs(8);
  for (SampleBudget* budget : {&of_model, &of_graphs}) {
    budget->begin();
    for (int i = 0; i < 1000; ++i) budget->spend(1000);
  }
  of_model.check();
  EXPECT_THROW(of_graphs.check(), SampleBudget::Spent);
  of_graphs.take(1000, {2}, graph_of(1000));
  of_graphs.check();
}

TEST(SampleBudget, KeepsTheLeastGraphAndTheLargest) {
  SampleBudget budget(1);
  budget.begin();
  for (const int64_t extent : {4, 2, 9, 5}) budget.take(1, {extent}, graph_of(extent));
  const ir::SampleSet found = budget.instead();
  ASSERT_EQ(found.samples.size(), 2u);
  EXPECT_EQ(found.samples[0].dims, std::vector<int64_t>{2});
  EXPECT_EQ(found.samples[1].dims, std::vector<int64_t>{9});
  EXPECT_EQ(found.samples[1].graph.nodes().size(), 9u);
}

TEST(SampleBudget, KeepsNoneOfEmptyAxes) {
  SampleBudget budget(1);
  budget.begin();
  budget.take(1, {0, 4}, graph_of(2));
  budget.take(1, {3, 4}, graph_of(5));
  const ir::SampleSet found = budget.instead();
  ASSERT_EQ(found.samples.size(), 1u);
  EXPECT_EQ(found.samples[0].dims, (std::vector<int64_t>{3, 4}));
}

TEST(SampleBudget, KeepsOneOfAlikeGraphs) {
  SampleBudget budget(1);
  budget.begin();
  for (const int64_t extent : {4, 2, 9}) budget.take(1, {extent}, graph_of(3));
  EXPECT_EQ(budget.instead().samples.size(), 1u);
}

}  // namespace
}  // namespace tensormill::frontend::onnx
