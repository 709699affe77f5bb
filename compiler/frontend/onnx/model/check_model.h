/// Structural checks of a parsed model: single assignment, order, names, sizes of initializers.
/// Thread-safety: pure functions.
#pragma once

#include <memory>

#include "compiler/frontend/onnx/import.h"
#include "compiler/frontend/onnx/model/model_proto.h"

namespace tensormill::frontend::onnx {

/// parse_model and all checks. Throws Error(kInvalidModel) naming node, value or tensor.
ModelProto checked_model(const ModelSource& source);
/// A node's name, or "Conv_12" by its position.
std::string node_label(const NodeProto& node, size_t index);
/// The version of ai.onnx that the model imports; kInvalidModel when there is none.
int64_t standard_opset(const ModelProto& model);
/// The nodes that have no converter; see unsupported_nodes in import.h.
std::vector<ErrorDetail> find_unsupported(const ModelProto& model);
ModelFacts collect_facts(const ModelProto& model);
/// Facts as JSON: format, inputs, outputs, ops, parameters.
std::string facts_json(const ModelFacts& facts);

}  // namespace tensormill::frontend::onnx
