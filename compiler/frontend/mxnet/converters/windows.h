/// What convolutions and pools say of their windows. Thread-safety: as the context.
#pragma once

#include <vector>

#include "compiler/build/maps/windows.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

/// An attribute of as many numbers as axes of space, from `least` on; `otherwise` each where it is not given.
ir::Ints along_space(NodeContext& node, const char* name, size_t rank, int64_t least, int64_t otherwise);
/// Refuses maps whose channels do not stand behind the batch.
void check_layout(NodeContext& node);

}  // namespace tensormill::frontend::mxnet
