/// Symbols that a run works out. A node bind_extents says what they are: its attribute `extents` names one
/// for each element of its operand. What has them in its type comes behind it, though it need not read its
/// result. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::ir {

inline constexpr const char* kBindExtents = "bind_extents";

/// Whether the node stays in a graph though nothing reads its results.
inline bool has_effect(const Node& node) { return node.op == kBindExtents; }

/// Nodes in the order in which a run can compute them, in segments: those whose extents are known when shapes
/// bind, then the nodes that bind the first symbols of a run, those whose extents are known by these, and so
/// on, so that there are as few segments as the symbols allow. A graph without such symbols stays as it is.
/// A loop, with all that is in it, stands in one place, as one node would; its body is in segments by itself,
/// by the symbols that each iteration binds anew. Throws Error(kNotSupported) where a symbol is used that no
/// node binds.
Graph in_segments(const Graph& graph);

/// The symbols that the node, a bind_extents, binds.
std::vector<std::string> bound_symbols(const Node& node);

/// The symbols that a run binds and that are in the ranges of those that the node, a bind_extents, binds,
/// beside these.
std::vector<std::string> range_symbols(const Graph& graph, const Node& node);

/// Of the node's results, of its attributes, and of those of all nodes of its region.
void for_each_extent(const Graph& graph, const Node& node, const std::function<void(const SymInt&)>& visit);

/// Whether all extents of the node's operands, results and attributes, and of its region, are numbers.
bool has_constant_extents(const Graph& graph, const Node& node);
/// Whether those of all nodes are.
bool has_constant_extents(const Graph& graph);

/// The symbols that a run binds, by name, in the order of the nodes that bind them.
std::vector<std::string> run_symbols(const Graph& graph);

}  // namespace tensormill::ir
