/// Resize by dynamic operands: axes of which a run works out the scales or the part that is read.
/// Thread-safety: as the context.
#pragma once

#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/pictures/resize_taps.h"
#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

using build::ResizeAxis;
using build::ResizeOptions;

/// The axes of operand 0, not resized.
std::vector<ResizeAxis> axes_of(NodeContext& context);
/// The scale of an axis, and its extent. Throws Error(kInvalidModel) where it is no scale.
void set_scale(const NodeContext& context, ResizeAxis& axis, double scale);
/// The scale of an axis that depends on free dims: `factor` is its float_code, `scale` the value [1]. Throws
/// as set_scale.
void set_symbolic_scale(NodeContext& context, ResizeAxis& axis, const ir::SymInt& factor, ir::ValueId scale);
/// The scales of the axes `which`, by a value of which a run works out some elements.
void set_dynamic_scales(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which,
                        ir::ValueId scales);
/// The part that is read of the axes `which` (operand 1).
void set_dynamic_parts(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which);
/// Which of the axes are of a run, now that all is said about them. Throws ValueRequired where one is resized
/// whose extent data decides, and is no symbol.
void settle_axes(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which);

/// x resized along `dim`, a dynamic axis.
ir::ValueId dynamic_resize(Compose& c, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                           const ResizeOptions& options);
/// `resized`, but x where the axis is left as it is.
ir::ValueId unless_left(Compose& c, ir::ValueId x, ir::ValueId resized, int64_t dim, const ResizeAxis& axis,
                        const ResizeOptions& options);
}  // namespace tensormill::frontend::onnx
