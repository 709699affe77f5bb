/// Names of external data files in a model.
/// Thread-safety: pure functions.
#pragma once

#include <set>
#include <string>

#include "compiler/frontend/onnx/model/model_proto.h"

namespace tensormill::frontend::onnx {

/// The file names that tensors of the model refer to, sorted, as external_name has them.
std::set<std::string> external_names(const ModelProto& model);
/// The file that an external tensor is in, without parts that are "." or empty ("./w.bin" is "w.bin"). Throws
/// Error(kInvalidModel) where it names none, and for a name that is absolute, empty or climbs out of the
/// folder.
std::string external_name(const TensorProto& tensor);
/// Throws Error(kInvalidModel) unless `name` is relative, without "..", "." or empty parts, and printable.
void check_relative_name(const std::string& name);

}  // namespace tensormill::frontend::onnx
