/// Small questions that passes ask about a graph.
/// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::passes {

/// The node that makes `value`, or null for inputs, constants and absent operands.
inline const ir::Node* producer_of(const ir::Graph& graph, ir::ValueId value) {
  if (value == ir::kAbsent || graph.value(value).producer == ir::kAbsent) return nullptr;
  return &graph.node(graph.value(value).producer);
}

/// The producer when it is `op`, else null.
inline const ir::Node* match(const ir::Graph& graph, ir::ValueId value, std::string_view op) {
  const ir::Node* node = producer_of(graph, value);
  return node != nullptr && node->op == op ? node : nullptr;
}

/// Whether all of a list of integers, where the node has it, are `value`.
inline bool all_equal(const ir::Node& node, const std::string& name, int64_t value) {
  if (!node.attrs.has(name)) return true;
  const ir::Ints values = node.attrs.ints_of(name);
  return std::all_of(values.begin(), values.end(), [&](int64_t each) { return each == value; });
}

/// Attribute "axis" of values of this rank, from the front.
inline size_t axis_of(const ir::Node& node, int64_t fallback, size_t rank) {
  return ops::normal_axis(ops::attr_int(node.attrs, "axis", fallback), rank);
}

/// The value of a constant of one element.
inline std::optional<double> scalar_of(const ir::Graph& graph, ir::ValueId id) {
  if (id == ir::kAbsent) return std::nullopt;
  const std::optional<Tensor>& constant = graph.value(id).constant;
  if (!constant || constant->num_elements() != 1) return std::nullopt;
  return constant->element_as_double(0);
}

/// Where each output dimension of a transpose comes from: its attribute, or the reversed order.
inline std::vector<int64_t> permutation_of(const ir::Graph& graph, const ir::Node& transpose) {
  if (transpose.attrs.has("perm")) return transpose.attrs.ints_of("perm");
  std::vector<int64_t> reversed;
  for (size_t d = graph.value(transpose.inputs[0]).type.shape.size(); d-- > 0;) {
    reversed.push_back(static_cast<int64_t>(d));
  }
  return reversed;
}

/// Whether extents are proven to be equal at all shapes, however they are written. Adds no guard for extents
/// of 1 or more.
inline bool are_equal(const ir::SymInt& a, const ir::SymInt& b) {
  return ir::same(a, b) || ir::is_proven(ir::Relation::kEqual, a, b);
}
inline bool are_equal(const ir::SymShape& a, const ir::SymShape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ir::SymInt& left, const ir::SymInt& right) { return are_equal(left, right); });
}

/// Whether values have one dtype, and shapes that are known to be equal.
inline bool have_same_type(const ir::Graph& graph, ir::ValueId a, ir::ValueId b) {
  const ir::ValueType &left = graph.value(a).type, &right = graph.value(b).type;
  return left.dtype == right.dtype && are_equal(left.shape, right.shape);
}

/// How often each value is read; graph outputs count as a read.
inline std::vector<int> count_reads(const ir::Graph& graph) {
  std::vector<int> reads(graph.values().size(), 0);
  for (const ir::Node& node : graph.nodes()) {
    for (ir::ValueId input : node.inputs) {
      if (input != ir::kAbsent) ++reads[static_cast<size_t>(input)];
    }
  }
  for (ir::ValueId output : graph.outputs()) ++reads[static_cast<size_t>(output)];
  return reads;
}

/// Origins of both, without repeats.
inline std::vector<std::string> merge_origins(std::vector<std::string> first,
                                              const std::vector<std::string>& second) {
  ir::add_origins(second, first);
  return first;
}

}  // namespace tensormill::passes
