/// Operators of TensorFlow in TensorFlow Lite's files: custom operators named "Flex" and TensorFlow's name,
/// whose options are a list of that name and of a NodeDef. Whoever imports the file knows who adds these.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::frontend::tflite {

inline constexpr std::string_view kFlexPrefix = "Flex";

struct FlexOperators {
  /// Whether operators of TensorFlow's name are imported.
  bool (*is_imported)(std::string_view op) = nullptr;
  /// Adds a NodeDef's operator to the graph; its results. Throws as converters do.
  std::vector<ir::ValueId> (*add)(ir::Graph& graph, const std::set<std::string>& reserved,
                                  std::string_view node_def,
                                  const std::vector<ir::ValueId>& operands) = nullptr;
};

}  // namespace tensormill::frontend::tflite
