/// Moves whose places a run works out. Thread-safety: as the context.
#pragma once

#include "compiler/frontend/onnx/converter.h"

namespace tensormill::frontend::onnx {

/// Throws ValueRequired where data decides about extents of operand 0 in a way that cannot be told.
void require_told_extents(const NodeContext& context);
/// Reshape to a shape of which the numbers are not known.
void reshape_as_run(NodeContext& context);
/// Squeeze and Unsqueeze of axes that are not known.
void squeeze_as_run(NodeContext& context);
void unsqueeze_as_run(NodeContext& context);
/// Slice of which a run says some numbers.
void slice_as_run(NodeContext& context);
/// Pad whose pads are not known: of mode constant, the pads not less than 0.
void pad_as_run(NodeContext& context);

}  // namespace tensormill::frontend::onnx
