/// Factors that converters make of extents. Thread-safety: as the context.
#pragma once

#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

/// 1 / sqrt(extent), of an extent of 0 that of 1, as a number of the dtype of `like`: as nodes where
/// the extent is free.
ir::ValueId inverse_root(NodeContext& context, ir::ValueId like, const ir::SymInt& extent);

}  // namespace tensormill::frontend::onnx
