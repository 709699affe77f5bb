/// Types of values out of the wire format. Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/onnx/model/model_proto.h"
#include "compiler/frontend/wire/protobuf.h"

namespace tensormill::frontend::onnx {

/// A ValueInfoProto: the name of an input or output, its kind, element types and shape. Throws
/// Error(kInvalidModel).
ValueInfoProto parse_value_info(wire::WireReader reader);

}  // namespace tensormill::frontend::onnx
