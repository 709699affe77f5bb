/// An operator of TensorFlow that stands by itself in the file of another format. Thread-safety: as the
/// graph.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::frontend::tensorflow {

/// Whether an operator of that name can be added.
bool is_single_node(std::string_view op);

/// Adds what a NodeDef in protobuf's wire format makes of its operands to the graph; its results. `reserved`:
/// names of the graph's inputs and outputs. Throws Error(kInvalidModel) for bytes that are none and operands
/// that do not fit, build::UnsupportedForm for what is not implemented, calls of functions and results that
/// are no tensors among it.
std::vector<ir::ValueId> add_single_node(ir::Graph& graph, const std::set<std::string>& reserved,
                                         std::string_view node_def, const std::vector<ir::ValueId>& operands);

}  // namespace tensormill::frontend::tensorflow
