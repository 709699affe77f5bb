/// The attributes of windows that move over a map: of convolutions and pools. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "compiler/build/maps/windows.h"
#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

using build::kMaxWindowNumber;
using build::Windows;

/// Refuses an attribute of another length.
void check_length(const NodeContext& context, const char* name, const std::vector<int64_t>& values,
                  size_t length);
/// The node's strides, dilations and pads, over a map of `shape` [N,C,spatial...].
Windows read_windows(const NodeContext& context, const ir::SymShape& shape, ir::SymShape kernel);
/// The same of a pool over x. A window may be larger than the padded input: the standard's shape inference
/// and ONNX Runtime divide what is left toward zero, so that there is one window, filled in part, where less
/// than a stride is missing, and none where less than two are. What lacks more is left to the operator, which
/// refuses it.
Windows read_pool_windows(NodeContext& context, ir::ValueId x);

}  // namespace tensormill::frontend::onnx
