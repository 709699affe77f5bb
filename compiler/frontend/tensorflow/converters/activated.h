/// What optimizers have put into one node. Thread-safety: as the context.
#pragma once

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

/// y [N,C,spatial...] or [N,...,C], `channel` where C stands, behind the node's fused_ops, whose operands
/// follow from `operand` on. Throws UnsupportedForm for one that is not implemented.
V with_fused(NodeContext& node, V y, int64_t channel, size_t operand);

}  // namespace tensormill::frontend::tensorflow
