/// Functions that a model defines (IR version 8). A call is replaced by the function's nodes while the graph
/// is built. Thread-safety: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/frontend/onnx/model/model_proto.h"

namespace tensormill::frontend::onnx {

/// The function that the node calls, or null.
const FunctionProto* find_function(const std::vector<FunctionProto>& functions, const NodeProto& node);

/// The function's nodes for this call: attributes that refer to the function's own (ref_attr_name) have the
/// call's values, or the defaults; one that is neither given nor has a default is left out, subgraphs
/// included.
std::vector<NodeProto> function_nodes(const FunctionProto& function, const NodeProto& call);

/// The standard opset of the function's nodes; `outer` where it names none.
int64_t function_opset(const FunctionProto& function, int64_t outer);

}  // namespace tensormill::frontend::onnx
