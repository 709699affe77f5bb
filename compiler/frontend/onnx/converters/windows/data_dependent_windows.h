/// Windows that move along axes whose extent data decides (data_extents.h). What is behind the count is
/// filled, so that it does as the pads there do; as many windows count as fit. Thread-safety: as the context.
#pragma once

#include <functional>

#include "compiler/frontend/onnx/converters/windows/windows.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"

namespace tensormill::frontend::onnx {

/// What `compute` makes of x [N,C,spatial...], filled with `with` (fill_behind): one element a window.
ir::ValueId over_windows(NodeContext& context, ir::ValueId x, const Windows& windows, const char* with,
                         const std::function<ir::ValueId(ir::ValueId)>& compute);
/// The same of a transposed convolution: one window an element, and `extra` elements behind them.
ir::ValueId from_windows(NodeContext& context, ir::ValueId x, const Windows& windows,
                         const std::vector<int64_t>& extra,
                         const std::function<ir::ValueId(ir::ValueId)>& compute);
/// Whether data decides an extent of x that the windows move along.
bool has_data_dependent_windows(NodeContext& context, ir::ValueId x);

}  // namespace tensormill::frontend::onnx
