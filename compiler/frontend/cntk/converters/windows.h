/// What convolutions and pools say of their windows, along the axes of a map [N,C,...]. Thread-safety: as the
/// context.
#pragma once

#include <vector>

#include "compiler/build/maps/windows.h"
#include "compiler/frontend/cntk/node_context.h"

namespace tensormill::frontend::cntk {

/// Along one axis.
struct AxisWindow {
  int64_t kernel = 1, stride = 1, dilation = 1;
  bool is_auto = false;  ///< as many windows as strides, of which the middle ones have the map's middle
  int64_t lower = 0, upper = 0;
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
};

/// The windows of a map's axes in the order of the tensor, of which the kernel has `extents` in CNTK's order;
/// along axes that it does not say a window of 1. Attributes strides, dilation, autoPadding, lowerPad and
/// upperPad have a number or a flag an axis, or one for all.
std::vector<AxisWindow> axis_windows(NodeContext& node, const ir::Ints& extents, size_t rank);

/// Windows over a map, and the map, of which elements that no window has are cut off.
struct MapWindows {
  V map = ir::kAbsent;
  build::Windows windows;
  bool ceil_mode = false;  ///< of free extents, of which the pads at the end do not follow
};
/// `is_ceil`: the last window may reach past the end.
MapWindows windows_over(NodeContext& node, V map, const std::vector<AxisWindow>& axes, bool is_ceil);

/// How many elements of what a transposed convolution makes stand before the result and behind it, where the
/// result has `extent` of them; below 0 where it has more. Throws Error(kInvalidModel) for an extent over
/// which there are not as many windows as `in`.
struct Cut {
  ir::SymInt lower = 0, upper = 0;
};
Cut transposed_cut(NodeContext& node, const AxisWindow& axis, const ir::SymInt& in,
                   std::optional<int64_t> extent);

}  // namespace tensormill::frontend::cntk
