/// The shapes that a Reshape names. Thread-safety: as the context.
#pragma once

#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

/// What the attributes of a Reshape make of `from`.
ir::SymShape reshaped_to(NodeContext& node, const ir::SymShape& from);

}  // namespace tensormill::frontend::mxnet
