/// Graphs from text, for the tests of the graph IR.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/graph.h"
#include "compiler/ops/ops.h"

namespace tensormill::ir {

inline Graph graph_of(std::string_view text) { return parse_graph(text, ops::standard_ops()); }

/// `graph "g" (inputs) { body return outputs }`, printed again.
inline std::string reprinted(std::string_view text) { return print(graph_of(text)); }

}  // namespace tensormill::ir
