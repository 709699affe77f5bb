/// The nodes of an exported program as they stand in its file. Thread-safety: pure functions.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "compiler/frontend/facts/file_graph.h"
#include "compiler/frontend/pytorch/import.h"

namespace tensormill::frontend::pytorch {

/// What errors call a node: its first output, or "torch.ops.my.op#3".
std::string node_label(const Node& node, size_t index);
/// What the paths of nodes begin with that are in the graph that `input` of a node is: `around` is that of
/// the graph that the node is in.
std::string paths_within(const std::string& around, const Node& node, size_t index,
                         const NamedArgument& input);
/// Names of numbers in an argument, or in a list of them.
std::set<std::string, std::less<>> number_names(const Json& value);

/// What is within the graphs of a branch or a loop belongs to the node that has them.
FileGraph file_graph(const Program& program, const Ports& ports);

}  // namespace tensormill::frontend::pytorch
