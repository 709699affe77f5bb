/// Random graphs through the whole compiler (passes, kernels, machine code, memory plan, package, executor)
/// at every opt level, against the reference.
#include <gtest/gtest.h>

#include <iostream>

#include "runtime/base/error.h"
#include "tests/driver/support.h"
#include "tests/ops/cases/chain_graph.h"
#include "tests/ops/cases/rounding.h"
#include "tests/scope.h"

namespace tensormill::driver_test {
namespace {

using ops_cases::RandomGraph;
using ops_cases::RandomGraphs;

/// Of the largest value of a whole graph: errors of its nodes add up. One rounding of a 16-bit float is far
/// more.
double graph_tolerance(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? 0.05 : 1e-3;
}

void check_graph(const RandomGraph& random, int level) {
  const driver::CompileResult result = driver::compile(random.graph, host_options(level));
  const std::vector<Tensor> actual = run(load(result), random.inputs);
  const std::vector<Tensor> expected = ir::evaluate_reference(random.graph, random.inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].shape(), expected[i].shape());
    const double tolerance = graph_tolerance(expected[i].dtype());
    if (ops_cases::difference(actual[i], expected[i], tolerance).empty()) continue;
    const std::vector<double> rounding = ops_cases::rounding_of(random.graph, random.inputs)[i];
    EXPECT_EQ(ops_cases::difference(actual[i], expected[i], tolerance, rounding), "")
        << "output " << i << " " << random.graph.value(random.graph.outputs()[i]).name << " of\n"
        << ir::print(random.graph);
  }
}

void report(const std::string& what, size_t checked, const RandomGraphs& graphs,
            const ops_cases::Coverage& coverage) {
  const size_t missing = coverage.missing(graphs.instances()).size();
  std::cout << what << ": " << checked << " graphs, " << graphs.instances().size() - missing << " of "
            << graphs.instances().size() << " operator x attributes x dtypes\n";
}

class Levels : public testing::TestWithParam<int> {};

/// Every case that a whole graph can be compared in, in graphs of another seed for each level.
TEST_P(Levels, RandomGraphsAgreeWithTheReference) {
  const int level = GetParam();
  const RandomGraphs graphs({.seed = static_cast<uint64_t>(11 + level),
                             .instances = 6,
                             .smooth = true,
                             .dtypes = {DType::kFloat32, DType::kInt64, DType::kInt32, DType::kBool}});
  ops_cases::Coverage coverage;
  for (size_t index = 0; index < graphs.count(); ++index) {
    SCOPED_TRACE("graph " + std::to_string(index));
    const RandomGraph random = graphs.make(index);
    coverage.add(random.graph);
    ASSERT_NO_THROW(check_graph(random, level));
  }
  report("level " + std::to_string(level), graphs.count(), graphs, coverage);
  EXPECT_TRUE(coverage.missing(graphs.instances()).empty()) << coverage.report(graphs.instances());
}

/// Graphs full of what passes look for, and small fused kernels.
TEST_P(Levels, ChainGraphsAgreeWithTheReference) {
  constexpr uint64_t kChains = 20;
  const auto first = uint64_t{1000} * static_cast<uint64_t>(GetParam());
  for (uint64_t seed = first; seed < first + kChains; ++seed) {
    SCOPED_TRACE("chain " + std::to_string(seed));
    ASSERT_NO_THROW(check_graph(ops_cases::make_chain_graph(seed), GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Levels, testing::Range(0, 5));

/// Graphs of one case each: operators whose small errors grow (rounding, comparisons), and the other dtypes.
TEST(RandomGraph, SingleCasesOfEveryDtypeAgreeAtTheDefaultLevel) {
  const RandomGraphs graphs({.seed = 7, .instances = 1, .smooth = false, .dtypes = {}});
  ops_cases::Coverage coverage;
  const size_t step = stride(15, 5);
  size_t checked = 0;
  for (size_t index = 0; index < graphs.count(); index += step, ++checked) {
    SCOPED_TRACE("graph " + std::to_string(index) + ", " + graphs.instances()[index].name());
    const RandomGraph random = graphs.make(index);
    coverage.add(random.graph);
    ASSERT_NO_THROW(check_graph(random, 3));
  }
  report("single cases", checked, graphs, coverage);
  EXPECT_GE(checked * step, 2500u);
}

}  // namespace
}  // namespace tensormill::driver_test
