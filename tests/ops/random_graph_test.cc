/// Random graphs of all operators: each node's tensor expression against the reference, whole graphs as one
/// program, and graphs in double.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compiler/ir/parts.h"
#include "compiler/ops/ops.h"
#include "compiler/te/interpret.h"
#include "runtime/base/error.h"
#include "tests/ops/cases/random_graph.h"
#include "tests/ops/cases/rounding.h"

namespace tensormill {
namespace {

using ops_cases::RandomGraph;
using ops_cases::RandomGraphs;

/// The reference's values of the distinct operands of a node.
std::vector<Tensor> operands_of(const ir::Node& node, const std::vector<Tensor>& values) {
  std::vector<Tensor> operands;
  std::set<ir::ValueId> seen;
  for (const ir::ValueId id : node.inputs) {
    if (id != ir::kAbsent && seen.insert(id).second) operands.push_back(values[static_cast<size_t>(id)]);
  }
  return operands;
}

/// Whether a tap in the padding is zero times its weight or is left out is the operator's choice; they differ
/// for weights that are NaN or infinite.
bool takes_no_stand(const ir::Node& node, const std::vector<Tensor>& values) {
  if (node.op.rfind("conv", 0) != 0) return false;
  const Tensor& weights = values[static_cast<size_t>(node.inputs[1])];
  for (int64_t i = 0; i < weights.num_elements(); ++i) {
    if (!std::isfinite(weights.element_as_double(i))) return true;
  }
  return false;
}

void check_nodes(const RandomGraph& random) {
  const std::vector<Tensor> values = ir::evaluate_all_values(random.graph, random.inputs);
  for (const ir::Node& node : random.graph.nodes()) {
    if (takes_no_stand(node, values)) continue;
    const std::vector<Tensor> operands = operands_of(node, values);
    const std::vector<Tensor> actual = te::evaluate(ops_cases::node_program(random.graph, node), operands);
    for (size_t i = 0; i < actual.size(); ++i) {
      const Tensor& expected = values[static_cast<size_t>(node.outputs[i])];
      const ir::OpDef& def = random.graph.ops().get(node.op);
      const double tolerance = ops_cases::tolerance_of(def, expected.dtype());
      if (ops_cases::difference(actual[i], expected, tolerance).empty()) continue;
      // What must be bit-equal is not rounded.
      const std::vector<double> rounding = ops_cases::rounding_of(random.graph, node, values)[i];
      EXPECT_EQ(tolerance == 0 ? ops_cases::difference(actual[i], expected, 0)
                               : ops_cases::difference(actual[i], expected, tolerance, rounding),
                "")
          << node.origins[0];
    }
  }
}

TEST(RandomGraph, EveryNodeAgreesAndEverythingIsCovered) {
  const RandomGraphs graphs;
  ops_cases::Coverage coverage;
  for (size_t index = 0; index < graphs.count(); ++index) {
    SCOPED_TRACE("graph " + std::to_string(index));
    const RandomGraph random = graphs.make(index);
    coverage.add(random.graph);
    check_nodes(random);
  }
  const std::vector<ops_cases::Instance> wanted = ops_cases::all_instances();
  EXPECT_TRUE(coverage.missing(wanted).empty()) << coverage.report(wanted);
  for (const std::string& name : ops_cases::operator_names())
    EXPECT_NE(coverage.report(wanted).find(name + ": "), std::string::npos) << name;
}

/// Parts at both ends and inside of every axis; those that one operator alone refuses to make are cut from
/// the whole.
std::vector<ir::Part> parts_of(const Shape& shape) {
  std::vector<ir::Part> parts;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t extent = shape[axis];
    if (extent < 2) continue;
    parts.push_back({axis, 0, 1});
    parts.push_back({axis, extent / 2, extent});
    if (extent > 2) parts.push_back({axis, 1, extent - 1});
  }
  return parts;
}

TEST(RandomGraph, PartsAreThoseOfTheWhole) {
  const RandomGraphs graphs;
  std::set<std::string> in_parts;
  for (size_t index = 0; index < graphs.count(); ++index) {
    SCOPED_TRACE("graph " + std::to_string(index));
    const RandomGraph random = graphs.make(index);
    const std::vector<Tensor> values = ir::evaluate_all_values(random.graph, random.inputs);
    for (const ir::Node& node : random.graph.nodes()) {
      const Tensor& whole = values[static_cast<size_t>(node.outputs[0])];
      const std::vector<ir::Part> parts = parts_of(whole.shape());
      if (whole.num_elements() == 0 || parts.empty()) continue;
      ir::PartPlan plan(random.graph);
      for (const ir::Part& part : parts) plan.add(node.outputs[0], part);
      const std::vector<Tensor> made = plan.evaluate(random.inputs);
      for (size_t i = 0; i < parts.size(); ++i) {
        EXPECT_EQ(ops_cases::difference(made[i], ir::part_of(whole, parts[i]), 1e-6), "")
            << node.origins[0] << ": indices " << parts[i].begin << " to " << parts[i].end << " of axis "
            << parts[i].axis << " of " << to_string(whole.shape());
      }
      const bool is_less = random.graph.ops().get(node.op).part != nullptr;
      if (is_less) in_parts.insert(node.op);
    }
  }
  EXPECT_GT(in_parts.size(), 50U);
}

TEST(RandomGraph, TheSameSeedGivesTheSameGraph) {
  EXPECT_EQ(ir::print(RandomGraphs().make(3).graph), ir::print(RandomGraphs().make(3).graph));
  EXPECT_NE(ir::print(RandomGraphs().make(3).graph),
            ir::print(RandomGraphs({.seed = 2, .dtypes = {}}).make(3).graph));
}

TEST(RandomGraph, PrintsParsesAndVerifies) {
  const RandomGraphs graphs;
  for (size_t index = 0; index < 40; ++index) {
    const RandomGraph random = graphs.make(index);
    ir::verify(random.graph);
    std::map<Digest, Tensor> constants;
    for (const Tensor& tensor : ops_cases::constants_of(random.graph)) {
      constants.emplace(
          Digest::of(std::string_view(static_cast<const char*>(tensor.data()), tensor.num_bytes())), tensor);
    }
    const std::string text = ir::print(random.graph);
    EXPECT_EQ(ir::print(ir::parse_graph(text, ops::standard_ops(), constants)), text);
  }
}

TEST(RandomGraph, WholeGraphsAgreeAsOneProgramAndInDouble) {
  const RandomGraphs graphs(
      {.instances = 5, .smooth = true, .dtypes = {DType::kFloat32, DType::kInt32, DType::kBool}});
  ASSERT_GT(graphs.count(), 20u);
  for (size_t index = 0; index < graphs.count(); ++index) {
    SCOPED_TRACE("graph " + std::to_string(index));
    const RandomGraph random = graphs.make(index);
    const std::vector<Tensor> expected = ir::evaluate_reference(random.graph, random.inputs);
    std::vector<Tensor> inputs = random.inputs;
    for (const Tensor& constant : ops_cases::constants_of(random.graph)) inputs.push_back(constant);
    const std::vector<Tensor> actual = te::evaluate(ops_cases::graph_program(random.graph), inputs);
    const std::vector<Tensor> in_double = ir::evaluate_reference(random.graph, random.inputs, true);
    const std::vector<std::vector<double>> rounding = ops_cases::rounding_of(random.graph, random.inputs);
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool half = expected[i].dtype() == DType::kFloat16 || expected[i].dtype() == DType::kBFloat16;
      EXPECT_EQ(ops_cases::difference(actual[i], expected[i], half ? 0.05 : 1e-3, rounding[i]), "")
          << "output " << i;
      Tensor narrowed(expected[i].dtype(), expected[i].shape());
      if (is_float(expected[i].dtype())) {
        EXPECT_EQ(in_double[i].dtype(), DType::kFloat64);
        for (int64_t e = 0; e < narrowed.num_elements(); ++e)
          narrowed.set_element(e, in_double[i].element_as_double(e));
        EXPECT_EQ(ops_cases::difference(narrowed, expected[i], half ? 0.05 : 1e-3, rounding[i]), "")
            << "output " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tensormill
