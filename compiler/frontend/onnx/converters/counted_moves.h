/// Moves whose places a run works out. Thread-safety: as the context.
#pragma once

#include "compiler/frontend/onnx/converter.h"

namespace tensormill::frontend::onnx {

/// Slice whose starts or ends are not known.
void slice_as_run(NodeContext& context);
/// Pad whose pads are not known: of mode constant, the pads not less than 0.
void pad_as_run(NodeContext& context);

}  // namespace tensormill::frontend::onnx
