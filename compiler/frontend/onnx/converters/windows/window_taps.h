/// Which elements windows read, worked out in the graph from positions, where the extents may be
/// free or a table of them would be large. Thread-safety: as the context.
#pragma once

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

/// Windows over the spatial axes of a map.
struct WindowGrid {
  ir::SymShape in, out;  ///< extents of the map, and how many windows there are
  std::vector<int64_t> kernel, strides, dilations, pads;  ///< pads: begins of all axes, then ends
};

/// [windows, taps]: the number of the element under each tap; a tap in the padding has that of the nearest
/// tap inside, along each axis. Column major: the first axis runs fastest.
ir::ValueId window_elements(NodeContext& context, const WindowGrid& grid, bool column_major);
/// [elements, taps]: by which window each element is under the tap, as tap * windows + window; taps * windows
/// where there is none.
ir::ValueId element_windows(NodeContext& context, const WindowGrid& grid);

}  // namespace tensormill::frontend::onnx
