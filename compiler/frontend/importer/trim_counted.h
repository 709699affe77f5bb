/// Outputs that are as long as a run decides. Thread-safety: as the graph.
#pragma once

#include "compiler/ir/graph.h"

namespace tensormill::frontend {

/// Cuts outputs of the graph to their counts (compiler/build/counted.h). Throws
/// Error(kOperatorNotImplemented) naming the node that mixes elements with what is not there.
ir::Graph trim_counted(ir::Graph graph);

}  // namespace tensormill::frontend
