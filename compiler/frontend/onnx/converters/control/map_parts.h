/// Maps are two tensors here (`maps.h`). Thread-safety: as the context.
#pragma once

#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

struct MapParts {
  ir::ValueId keys, values;  ///< [n], strings with their bytes behind it
};
/// Operands 0 and 1. Throws UnsupportedForm for a map that is no input of the model.
MapParts map_parts(NodeContext& context);

}  // namespace tensormill::frontend::onnx
