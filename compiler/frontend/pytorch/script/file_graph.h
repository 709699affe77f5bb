/// The operators that a TorchScript module's code calls. Thread-safety: pure functions.
#pragma once

#include <string>

#include "compiler/frontend/facts/file_graph.h"
#include "compiler/frontend/pytorch/script/import.h"
#include "compiler/frontend/pytorch/script/value.h"

namespace tensormill::frontend::pytorch::script {

/// Where a call is, of which there may be several on a line: "code/__torch__/net.py:4 aten.relu".
std::string call_path(const Place& place, const std::string& name);

/// Calls of forward() and of all that it calls, each as often as the code calls it; both sides of a branch,
/// and a loop's body once. Nothing is run: what a variable is after a branch, it is of both sides.
FileGraph file_graph(const Module& module, const Ports& ports);

}  // namespace tensormill::frontend::pytorch::script
