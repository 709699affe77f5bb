/// The elements of a TensorProto.
/// Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/onnx/import.h"
#include "compiler/frontend/onnx/model/model_proto.h"

namespace tensormill::frontend::onnx {

/// Checks dtype, dims and that the data has as many elements, without reading them. Throws
/// Error(kInvalidModel) naming the tensor, or Error(kOperatorAttributeNotImplemented) for element types that
/// tensors cannot have here.
void check_tensor(const TensorProto& tensor, const ModelSource& source);
/// The tensor; raw and external data of aligned little-endian elements stay mapped, the rest is copied.
/// check_tensor must have passed.
Tensor read_tensor(const TensorProto& tensor, const ModelSource& source);

}  // namespace tensormill::frontend::onnx
