/// The nodes of an ONNX file as they stand there. Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/facts/file_graph.h"
#include "compiler/frontend/onnx/import.h"

namespace tensormill::frontend::onnx {

/// Of the graph itself: what is within branches, loops and functions belongs to the node that has or calls
/// them. Paths are the pointers of unsupported_nodes. Throws as checked_model.
FileGraph file_graph(const ModelSource& source);

}  // namespace tensormill::frontend::onnx
