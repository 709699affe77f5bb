#include <algorithm>
#include <cmath>

#include "compiler/plan/dim_algebra.h"
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

/// A quotient of a small number that is a part of a whole.
bool is_quotient(double number) {
  return std::isfinite(number) && number > 0 && number < 16 && std::rint(number) != number &&
         std::rint(number * 64) == number * 64;
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

/// Those of the model's numbers that may scale extents for which `is_wanted` holds.
std::vector<float> factors_of(const ir::Graph& graph, bool (*is_wanted)(double)) {
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
      if (is_wanted(number) && is_new && factors.size() < kMaxFactors) factors.push_back(factor);
    }
  }
  return factors;
}

/// The integers of a short row: what is known of shapes, also where it was cast, or a constant.
std::optional<std::vector<int64_t>> integers_of(const ir::Graph& graph, ir::ValueId id) {
  while (graph.value(id).producer != ir::kAbsent && !graph.value(id).known) {
    const ir::Node& node = graph.node(graph.value(id).producer);
    if (node.op != "cast") return std::nullopt;
    id = node.inputs[0];
  }
  const ir::Value& value = graph.value(id);
  const Tensor* row = value.tensor();
  if (row == nullptr || row->num_elements() > kLongestRow || row->dtype() == DType::kBool)
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < row->num_elements(); ++i) {
    const double number =
        is_float(row->dtype()) ? row->element_as_double(i) : static_cast<double>(row->element_as_int(i));
    if (number != std::rint(number) || !(std::fabs(number) < 1e15)) return std::nullopt;
    numbers.push_back(static_cast<int64_t>(number));
  }
  return numbers;
}

/// By element of a short row: its values in the samples, where all have it.
std::vector<std::vector<int64_t>> rows_of(const std::vector<const ir::Graph*>& samples, ir::ValueId id) {
  std::vector<std::vector<int64_t>> rows;
  for (const ir::Graph* graph : samples) {
    const std::optional<std::vector<int64_t>> numbers = integers_of(*graph, id);
    if (!numbers || (!rows.empty() && rows.size() != numbers->size())) return {};
    rows.resize(numbers->size());
    for (size_t k = 0; k < rows.size(); ++k) rows[k].push_back((*numbers)[k]);
  }
  return rows;
}

void add_ratios(const std::vector<const ir::Graph*>& samples, const ir::Node& node, ExtentFacts& facts) {
  const auto ups = rows_of(samples, node.inputs[0]), downs = rows_of(samples, node.inputs[1]);
  if (ups.empty() || downs.empty()) return;
  for (size_t k = 0; k < std::max(ups.size(), downs.size()); ++k) {
    const auto &up = ups[k % ups.size()], &down = downs[k % downs.size()];
    if (facts.ratios.size() < kMaxFactors) facts.ratios.push_back({up, down, facts.extents.size()});
  }
}

/// Where each part of a concatenation ends: with many, the sum of all is no sum of two that are known.
void add_ends(const std::vector<const ir::Graph*>& samples, const ir::Node& node, ExtentFacts& facts) {
  const auto axis = static_cast<size_t>(node.attrs.int_of("axis"));
  std::vector<int64_t> ends(samples.size(), 0);
  for (const ir::ValueId part : node.inputs) {
    for (size_t s = 0; s < samples.size(); ++s) ends[s] += samples[s]->value(part).type.shape[axis];
    if (varies(ends)) facts.extents.push_back(ends);
  }
}

bool divides_floats(const ir::Graph& graph, const ir::Node& node) {
  return node.op == "div" && is_float(graph.value(node.outputs[0]).type.dtype);
}

bool same_structure(const std::vector<const ir::Graph*>& samples) {
  const ir::Graph& first = *samples.front();
  return std::all_of(samples.begin(), samples.end(), [&](const ir::Graph* graph) {
    return graph->values().size() == first.values().size() && graph->nodes().size() == first.nodes().size();
  });
}

}  // namespace

namespace {

using Nodes = std::vector<std::pair<const ir::Graph*, const ir::Node*>>;  // by sample

void add_slices(const Nodes& nodes, std::vector<SliceFact>& slices) {
  const auto asked_of = [](const auto& node) { return node.second->attrs.ints_of("asked"); };
  for (size_t axis = 0; axis < asked_of(nodes[0]).size() / 3; ++axis) {
    SliceFact slice{{}, {}, {}, asked_of(nodes[0])[3 * axis + 2]};
    bool has_one_step = true;
    for (const auto& node : nodes) {
      slice.extent.push_back(node.first->value(node.second->inputs[0]).type.shape[axis]);
      slice.start.push_back(asked_of(node)[3 * axis]);
      slice.end.push_back(asked_of(node)[3 * axis + 1]);
      has_one_step = has_one_step && asked_of(node)[3 * axis + 2] == slice.step;
    }
    if (has_one_step && varies(slice.extent)) slices.push_back(std::move(slice));
  }
}

/// Of a split in parts of one size, but for the last ones.
void add_parts(const Nodes& nodes, std::vector<SliceFact>& slices) {
  const auto parts = static_cast<int64_t>(nodes[0].second->outputs.size());
  for (int64_t part = 1; part < parts; ++part) {
    SliceFact slice;
    for (const auto& [graph, node] : nodes) {
      const auto axis = static_cast<size_t>(node->attrs.int_of("axis"));
      const int64_t extent = graph->value(node->inputs[0]).type.shape[axis],
                    size = (extent + parts - 1) / parts;
      slice.extent.push_back(extent);
      slice.start.push_back(part * size);
      slice.end.push_back((part + 1) * size);
    }
    if (varies(slice.extent)) slices.push_back(std::move(slice));
  }
}

}  // namespace

std::vector<SliceFact> slice_facts(const std::vector<const ir::Graph*>& samples) {
  std::vector<SliceFact> slices;
  if (!same_structure(samples)) return slices;
  for (size_t n = 0; n < samples.front()->nodes().size(); ++n) {
    Nodes nodes;
    for (const ir::Graph* graph : samples) nodes.emplace_back(graph, &graph->nodes()[n]);
    const auto all_have = [&](const char* op, const char* attribute) {
      return std::all_of(nodes.begin(), nodes.end(), [&](const auto& node) {
        return node.second->op == op && node.second->attrs.has(attribute);
      });
    };
    if (all_have("slice", "asked")) add_slices(nodes, slices);
    if (all_have("split", "even")) add_parts(nodes, slices);
  }
  return slices;
}

ExtentFacts extent_facts(const std::vector<const ir::Graph*>& samples, bool all) {
  ExtentFacts facts;
  const ir::Graph& first = *samples.front();
  facts.factors = factors_of(first, &is_factor);
  facts.quotients = factors_of(first, &is_quotient);
  facts.slices = slice_facts(samples);
  if (!same_structure(samples)) return facts;
  for (size_t i = 0; i < first.values().size(); ++i) {
    const ir::NodeId producer = first.values()[i].producer;
    if (producer != ir::kAbsent && divides_floats(first, first.node(producer)))
      add_ratios(samples, first.node(producer), facts);
    if (all && producer != ir::kAbsent && first.node(producer).op == "concat")
      add_ends(samples, first.node(producer), facts);
    const auto shape_of = [&](const ir::Graph* graph) -> const ir::SymShape& {
      return graph->values()[i].type.shape;
    };
    for (size_t d = 0; d < shape_of(&first).size(); ++d) {
      std::vector<int64_t> values;
      for (const ir::Graph* graph : samples) {
        if (d < shape_of(graph).size()) values.push_back(shape_of(graph)[d]);
      }
      if (values.size() == samples.size() && varies(values)) facts.extents.push_back(std::move(values));
    }
    if (!all || !first.values()[i].known) continue;
    for (std::vector<int64_t>& values : rows_of(samples, static_cast<ir::ValueId>(i))) {
      if (varies(values)) facts.extents.push_back(std::move(values));
    }
  }
  if (facts.factors.empty() && facts.ratios.empty() && !all) facts.extents.clear();
  return facts;
}

}  // namespace tensormill::plan
