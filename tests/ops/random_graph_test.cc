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

double largest(const Tensor& tensor) {
  double value = 0;
  for (int64_t i = 0; is_float(tensor.dtype()) && i < tensor.num_elements(); ++i) {
    const double next = std::fabs(tensor.element_as_double(i));
    if (std::isfinite(next)) value = std::max(value, next);
  }
  return value;
}

/// Of rows whose elements are all alike a norm gives what rounding has left of zero: no more than this.
double rest_of_norm(const ir::Node& node, const std::vector<Tensor>& operands, double tolerance) {
  if (node.op != "layer_norm" && node.op != "instance_norm") return 0;
  double from = 1;
  for (const Tensor& operand : operands) from *= std::max(largest(operand), 1.0);
  const double epsilon = node.attrs.has("epsilon") ? node.attrs.float_of("epsilon") : 1e-5;
  return tolerance * from / std::sqrt(epsilon);
}

bool all_below(const Tensor& tensor, double bound) {
  bool are = true;
  for (int64_t i = 0; are && i < tensor.num_elements(); ++i)
    are = std::fabs(tensor.element_as_double(i)) < bound;
  return are;
}

/// Operands that earlier operators left may make every result cancel (gelu where all of x is near -4): then
/// the rounding of the operands, not of the result, is the scale of the error.
double cancellation(const ir::OpDef& def, const std::vector<Tensor>& operands, const Tensor& result) {
  if (!is_float(result.dtype())) return 1;
  double from = 0;
  for (const Tensor& operand : operands) from = std::max(from, largest(operand));
  // Sums of products that cancel are rounded at the scale of the products.
  if (def.pattern == ir::Pattern::kComplex && operands.size() > 1)
    from = std::max(from, largest(operands[0]) * largest(operands[1]));
  const double to = largest(result);
  return to > 0 && from > to ? from / to : 1;
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
      const double rest = rest_of_norm(node, operands, tolerance);
      if (rest > 0 && all_below(expected, rest) && all_below(actual[i], rest)) continue;
      const bool cancels = node.op == "gelu" || def.pattern == ir::Pattern::kComplex;
      const double scale = cancels ? cancellation(def, operands, expected) : 1;
      EXPECT_EQ(ops_cases::difference(actual[i], expected, tolerance * scale), "") << node.origins[0];
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

/// What cancels, as the logarithm of the sum of a softmax does, has no digits to compare: inputs are of the
/// order of 1.
bool is_rounding_alone(const Tensor& tensor) {
  if (!is_float(tensor.dtype())) return false;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (!(std::fabs(tensor.element_as_double(i)) < 1e-6)) return false;
  }
  return true;
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
    for (size_t i = 0; i < expected.size(); ++i) {
      if (is_rounding_alone(expected[i])) continue;
      const bool half = expected[i].dtype() == DType::kFloat16 || expected[i].dtype() == DType::kBFloat16;
      EXPECT_EQ(ops_cases::difference(actual[i], expected[i], half ? 0.05 : 1e-3), "") << "output " << i;
      Tensor narrowed(expected[i].dtype(), expected[i].shape());
      if (is_float(expected[i].dtype())) {
        EXPECT_EQ(in_double[i].dtype(), DType::kFloat64);
        for (int64_t e = 0; e < narrowed.num_elements(); ++e)
          narrowed.set_element(e, in_double[i].element_as_double(e));
        EXPECT_EQ(ops_cases::difference(narrowed, expected[i], half ? 0.05 : 1e-3), "") << "output " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tensormill
