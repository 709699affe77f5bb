/// Which parts of their inputs operators need for a part of their output (ir::OpDef::part).
/// Thread-safety: pure functions.
#pragma once

#include "compiler/ops/windows/window.h"

namespace tensormill::ops {

/// Elements at the same broadcast index.
bool part_of_elementwise(ir::PartContext& context);
/// The same indices of every input, whose ranks are the output's; not along `axis`.
bool part_beside_axis(ir::PartContext& context, size_t axis);
/// The same indices along the same axis of input 0; all of the others.
bool part_of_first(ir::PartContext& context);
/// Of a window that slides over input 0, whose spatial dimensions start at axis 2, and that has attribute
/// pads: along those, and along the batch.
bool part_of_windows(ir::PartContext& context, const Window& window);

}  // namespace tensormill::ops
