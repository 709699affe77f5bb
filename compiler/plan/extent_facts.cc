#include <algorithm>
#include <cmath>

#include "compiler/plan/generic_plan.h"

namespace tensormill::plan {

namespace {

/// Rows of numbers that shapes are made of are short, and a model has few factors.
constexpr int64_t kLongestRow = 16;
constexpr size_t kMaxFactors = 32;

/// Multiples of a 64th are quotients, and exact in float32.
bool is_factor(double number) {
  return std::isfinite(number) && number > 1e-4 && number < 1e4 && std::rint(number * 64) != number * 64;
}

/// Whether a constant may be read by the importer alone, or multiplies a short row.
bool may_scale(const ir::Graph& graph, const std::vector<ir::NodeId>& readers) {
  return std::all_of(readers.begin(), readers.end(), [&](ir::NodeId id) {
    const ir::Node& node = graph.node(id);
    const bool moves = node.op == "concat" || node.op == "reshape" || node.op == "slice" ||
                       node.op == "gather" || node.op == "cast" || node.op == "identity";
    return (moves || node.op == "mul") &&
           num_elements(graph.value(node.outputs[0]).type.shape) <= kLongestRow;
  });
}

std::vector<float> factors_of(const ir::Graph& graph) {
  std::vector<float> factors;
  const std::vector<std::vector<ir::NodeId>> uses = graph.uses();
  for (size_t i = 0; i < uses.size(); ++i) {
    const std::optional<Tensor>& constant = graph.values()[i].constant;
    if (!constant || !is_float(constant->dtype()) || constant->num_elements() > kLongestRow) continue;
    if (!may_scale(graph, uses[i])) continue;
    for (int64_t k = 0; k < constant->num_elements(); ++k) {
      const double number = constant->element_as_double(k);
      const auto factor = static_cast<float>(number);
      const bool is_new = std::find(factors.begin(), factors.end(), factor) == factors.end();
      if (is_factor(number) && is_new && factors.size() < kMaxFactors) factors.push_back(factor);
    }
  }
  return factors;
}

}  // namespace

ExtentFacts extent_facts(const std::vector<const ir::Graph*>& samples) {
  ExtentFacts facts;
  facts.factors = factors_of(*samples.front());
  if (facts.factors.empty()) return facts;
  const size_t count = samples.front()->values().size();
  const bool same = std::all_of(samples.begin(), samples.end(),
                                [&](const ir::Graph* graph) { return graph->values().size() == count; });
  for (size_t i = 0; i < count && same; ++i) {
    const auto shape_of = [&](const ir::Graph* graph) -> const Shape& {
      return graph->values()[i].type.shape;
    };
    for (size_t d = 0; d < shape_of(samples.front()).size(); ++d) {
      std::vector<int64_t> values;
      for (const ir::Graph* graph : samples) {
        if (d < shape_of(graph).size()) values.push_back(shape_of(graph)[d]);
      }
      const bool varies =
          std::any_of(values.begin(), values.end(), [&](int64_t v) { return v != values[0]; });
      if (varies && values.size() == samples.size()) facts.extents.push_back(std::move(values));
    }
  }
  return facts;
}

}  // namespace tensormill::plan
