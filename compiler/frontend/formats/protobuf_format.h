/// Which protobuf message a file is. Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "compiler/frontend/formats/detect.h"

namespace tensormill::frontend {

/// Distinguishes ModelProto (ONNX), GraphDef and SavedModel (TensorFlow), Model (Core ML), NetDef (Caffe2)
/// by the fields that they have; kUnknown for anything else. A file that is cut off is what its first fields
/// are.
FileFormat protobuf_format(std::string_view bytes);

}  // namespace tensormill::frontend
