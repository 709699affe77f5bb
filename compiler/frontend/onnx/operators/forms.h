/// What is not implemented of a node whose operator is: known from the node alone, before any work.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

/// All forms of the node that are not implemented: element types that attributes name or hold, attributes
/// that are not in attribute_names.def, values outside of attribute_values.def, operands and outputs of
/// node_arity.def, and what the row of the operator checks.
std::vector<UnsupportedForm> unsupported_forms(const NodeProto& node, int64_t opset);
/// "op com.microsoft.CDist, opset 17", which messages about a node begin with.
std::string operator_label(const NodeProto& node, int64_t opset);
/// The same with attribute and reason.
std::string form_detail(const NodeProto& node, int64_t opset, const UnsupportedForm& form);

}  // namespace tensormill::frontend::onnx
