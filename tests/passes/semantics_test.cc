/// Every pass keeps what a graph computes: the reference's values before and after, on random graphs, for
/// each pass alone and for the whole pipeline after each of its passes.
#include <gtest/gtest.h>

#include <functional>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pass.h"
#include "runtime/base/error.h"
#include "tests/ops/cases/chain_graph.h"

namespace tensormill::passes {
namespace {

using ops_cases::RandomGraph;

constexpr uint64_t kChains = 400;
constexpr std::string_view kLayoutPass = "convert_layout";

std::vector<target::CpuFacts> all_facts() {
  return {{.vector_bits = 512, .vector_registers = 32, .fma = true},
          {.vector_bits = 128, .vector_registers = 16, .fma = false}};
}

/// A graph, and what the reference gives for its inputs.
struct Known {
  std::string what;
  RandomGraph random;
  std::vector<Tensor> expected;
};

Known known(std::string what, RandomGraph random) {
  std::vector<Tensor> expected = ir::evaluate_reference(random.graph, random.inputs);
  return {std::move(what), std::move(random), std::move(expected)};
}

/// Names, types and values of the outputs are the same; folded constants round once more than the double run.
void expect_same(const Known& before, const ir::Graph& after) {
  const ir::Graph& graph = before.random.graph;
  ASSERT_EQ(after.inputs().size(), graph.inputs().size());
  ASSERT_EQ(after.outputs().size(), graph.outputs().size());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    EXPECT_EQ(after.value(after.inputs()[i]).name, graph.value(graph.inputs()[i]).name);
  }
  const std::vector<Tensor> actual = ir::evaluate_reference(after, before.random.inputs);
  for (size_t i = 0; i < before.expected.size(); ++i) {
    const Tensor& expected = before.expected[i];
    EXPECT_EQ(ops_cases::difference(actual[i], expected, is_float(expected.dtype()) ? 1e-4 : 0), "")
        << "output " << i << " of\n"
        << ir::print(graph) << "which became\n"
        << ir::print(after);
  }
}

/// All smooth cases of the usual dtypes, then graphs full of what passes look for: made and evaluated once
/// for all passes.
const std::vector<Known>& known_graphs() {
  static const std::vector<Known> all = [] {
    const ops_cases::RandomGraphs graphs(
        {.seed = 3,
         .instances = 8,
         .smooth = true,
         .dtypes = {DType::kFloat32, DType::kInt64, DType::kInt32, DType::kBool}});
    std::vector<Known> made;
    for (size_t index = 0; index < graphs.count(); ++index)
      made.push_back(known("graph " + std::to_string(index), graphs.make(index)));
    for (uint64_t seed = 0; seed < kChains; ++seed)
      made.push_back(known("chain " + std::to_string(seed), ops_cases::make_chain_graph(seed)));
    return made;
  }();
  return all;
}

void for_each_graph(const std::function<void(const Known&)>& check) {
  for (const Known& one : known_graphs()) {
    SCOPED_TRACE(one.what);
    check(one);
    if (testing::Test::HasFailure()) return;
  }
}

/// What the pass is asked for: one pass makes layouts, the others take what it makes.
std::vector<std::optional<DesiredLayout>> layouts_for(const PassInfo& pass) {
  if (pass.name != kLayoutPass) return {std::nullopt};
  return {DesiredLayout{MapLayout::kChannelsFirst}, DesiredLayout{MapLayout::kChannelsLast}};
}

class Pass : public testing::TestWithParam<size_t> {};

TEST_P(Pass, AloneKeepsTheValues) {
  const PassInfo& pass = all_passes()[GetParam()];
  for (const target::CpuFacts& facts : all_facts()) {
    for_each_graph([&](const Known& one) {
      for (const std::optional<DesiredLayout>& layout : layouts_for(pass)) {
        PassContext context{facts, 4};
        context.layout = layout;
        const ir::Graph after = pass.run(one.random.graph, context);
        ASSERT_NO_THROW(ir::verify(after));
        expect_same(one, after);
      }
    });
  }
}

std::string pass_name(const testing::TestParamInfo<size_t>& info) {
  return std::string(all_passes()[info.param].name);
}
INSTANTIATE_TEST_SUITE_P(All, Pass, testing::Range<size_t>(0, all_passes().size()), pass_name);

TEST(Pipeline, KeepsTheValuesAfterEveryPass) {
  for (const target::CpuFacts& facts : all_facts()) {
    for_each_graph([&](const Known& one) {
      std::vector<std::string> ran;
      PipelineOptions options{{facts, 4}, {}};
      options.context.layout = DesiredLayout{MapLayout::kChannelsLast};
      run_pipeline(one.random.graph, options, ran, [&](std::string_view pass, const ir::Graph& graph) {
        SCOPED_TRACE("after " + std::string(pass));
        expect_same(one, graph);
      });
      EXPECT_EQ(ran.size(), all_passes().size());
    });
  }
}

PipelineOptions without(const std::string& pass, int level) {
  PipelineOptions options;
  options.context.opt_level = level;
  options.disabled = {pass};
  return options;
}

TEST(Pipeline, RunsTheRowsOfItsLevelThatAreNotDisabled) {
  const RandomGraph random = ops_cases::make_chain_graph(1);
  for (int level = 0; level <= 4; ++level) {
    std::vector<std::string> ran, expected;
    run_pipeline(random.graph, without("fold_constants", level), ran);
    for (const PassInfo& row : all_passes()) {
      if (row.opt_level <= level && row.name != "fold_constants" && row.name != kLayoutPass)
        expected.emplace_back(row.name);
    }
    EXPECT_EQ(ran, expected) << "level " << level;
  }
}

TEST(Pipeline, UnknownNamesToDisableAreNamed) {
  std::vector<std::string> ran;
  try {
    run_pipeline(ops_cases::make_chain_graph(1).graph, without("fold_everything", 3), ran);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("fold_everything"), std::string::npos);
  }
}

TEST(Pipeline, IsAFunctionOfTheGraph) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<std::string> ran;
    const auto once = [&] {
      return ir::print(run_pipeline(ops_cases::make_chain_graph(seed).graph, {{all_facts()[0], 3}, {}}, ran));
    };
    EXPECT_EQ(once(), once());
  }
}

}  // namespace
}  // namespace tensormill::passes
