/// Symbols that a run works out. A node bind_extents says what they are: its attribute `extents` names one
/// for each element of its operand. What has them in its type comes behind it, though it need not read its
/// result. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::ir {

inline constexpr const char* kBindExtents = "bind_extents";

/// Whether the node stays in a graph though nothing reads its results.
inline bool has_effect(const Node& node) { return node.op == kBindExtents; }

/// Nodes in the order in which a run can compute them, in segments: those whose extents are known when shapes
/// bind, then the nodes that bind the first symbols of a run, those whose extents are known by these, and so
/// on, so that there are as few segments as the symbols allow. A graph without such symbols stays as it is.
/// A loop, with all that is in it, is in one segment, whose numbers are the same in all iterations. Throws
/// Error(kNotSupported) where a loop's body binds such symbols, and where a symbol is used that no node
/// binds.
Graph in_segments(const Graph& graph);

/// The symbols that a run binds, by name, in the order of the nodes that bind them.
std::vector<std::string> run_symbols(const Graph& graph);

}  // namespace tensormill::ir
