/// Results whose extent depends on data, such as NonZero's: graphs hold them at the largest extent that
/// shapes allow, with a count. What is computed from them element by element has the same count, and outputs
/// of the graph are trimmed to it. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::frontend::onnx {

/// The node that mixes elements of such an axis with what may not be there, and the graph's inputs on whose
/// values it depends.
struct MixedExtent {
  std::string node;
  std::vector<std::string> inputs;
};

/// Trims the graph's outputs; nothing else changes. Returns what cannot be told.
std::optional<MixedExtent> trim_outputs(ir::Graph& graph);

/// Whether an extent of `value` may depend on data.
bool has_data_extent(const ir::Graph& graph, ir::ValueId value);

/// The axis of a value that as many elements have as the count, an i64 [1], says.
struct DataExtent {
  size_t axis = 0;
  ir::ValueId count = ir::kAbsent;
};
/// What is known of the value's extents: that of one axis, that all are fixed, or nothing.
struct DataShape {
  bool is_known = true;
  std::optional<DataExtent> extent;
};
DataShape data_shape(const ir::Graph& graph, ir::ValueId value);
/// Whether two counts are computed alike, so that they are equal in each run.
bool same_count(const ir::Graph& graph, ir::ValueId a, ir::ValueId b);

}  // namespace tensormill::frontend::onnx
