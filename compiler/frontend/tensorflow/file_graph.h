/// The nodes of TensorFlow's graphs as they stand in their files. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/facts/file_graph.h"
#include "compiler/frontend/tensorflow/import.h"

namespace tensormill::frontend::tensorflow {

/// Where a node is: its name, and the function that it is in, whose nodes may have the names of others'.
std::string node_path(std::optional<std::string_view> function, const Node& node);
/// Adds the functions that a node calls, by any of its attributes.
void add_called(const Node& node, std::vector<std::string_view>& called);

/// What the entry point's results need. Functions that are only called stand where they are called; what is
/// within branches and loops belongs to the nodes that have them.
FileGraph file_graph(const SavedModel& model, const EntryPoint& entry);

}  // namespace tensormill::frontend::tensorflow
