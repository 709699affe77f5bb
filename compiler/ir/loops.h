/// Loops of a graph, which is flat: what is computed from the results of a loop_begin is the body, up to the
/// loop_end with the same number, and so is what has extents that a node of the body binds (run_dims.h).
/// Nothing else reads what is in a body. Thread-safety: pure functions.
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::ir {

inline constexpr std::string_view kLoopBegin = "loop_begin", kLoopEnd = "loop_end";

/// By node: the innermost loop in whose body it is, by the node of its begin; kAbsent for none. A loop's own
/// begin and end are where the loop is. Empty for a graph without loops. Throws InternalError for a loop
/// without an end, or a value that leaves its loop.
std::vector<NodeId> loops_around(const Graph& graph);

/// By node bind_extents: the loops in whose bodies it is, by the nodes of their begins. A loop without an end
/// is one of them, as where a body was built for nothing.
std::map<NodeId, std::set<NodeId>> loops_of_binds(const Graph& graph);

/// The nodes in an order in which each loop is its begin, its body and its end, one behind the other: what a
/// body does not change is before it. Branches are in branch_order.
std::vector<NodeId> loop_order(const Graph& graph);

}  // namespace tensormill::ir
