/// Types of values out of the wire format. Thread-safety: pure functions.
#pragma once

#include <string>

#include "compiler/frontend/onnx/model/model_proto.h"
#include "compiler/frontend/wire/protobuf.h"

namespace tensormill::frontend::onnx {

/// The text of the field at hand, a name of the kind `what`. One in another encoding than UTF-8, which some
/// exporters write, becomes ASCII: \xHH for each byte that is none. Throws Error(kInvalidModel).
std::string name_of(wire::WireReader& reader, const char* what);
/// A ValueInfoProto: the name of an input or output, its kind, element types and shape. Throws
/// Error(kInvalidModel).
ValueInfoProto parse_value_info(wire::WireReader reader);

}  // namespace tensormill::frontend::onnx
