#include "compiler/frontend/onnx/model/functions.h"

#include <algorithm>

namespace tensormill::frontend::onnx {

namespace {

using Arguments = std::map<std::string, const AttributeProto*>;

NodeProto bound(const NodeProto& node, const Arguments& arguments);

AttributeProto bound(const AttributeProto& attribute, const Arguments& arguments) {
  AttributeProto result = attribute;
  for (auto& graph : result.graphs) {
    GraphProto inner = *graph;
    for (NodeProto& node : inner.nodes) node = bound(node, arguments);
    graph = std::make_shared<const GraphProto>(std::move(inner));
  }
  return result;
}

NodeProto bound(const NodeProto& node, const Arguments& arguments) {
  NodeProto result = node;
  result.attributes.clear();
  for (const AttributeProto& attribute : node.attributes) {
    if (attribute.ref_attr_name.empty()) {
      result.attributes.push_back(bound(attribute, arguments));
      continue;
    }
    const auto given = arguments.find(attribute.ref_attr_name);
    if (given == arguments.end()) continue;
    result.attributes.push_back(*given->second);
    result.attributes.back().name = attribute.name;
  }
  return result;
}

}  // namespace

const FunctionProto* find_function(const std::vector<FunctionProto>& functions, const NodeProto& node) {
  const auto found = std::find_if(functions.begin(), functions.end(), [&](const FunctionProto& function) {
    return function.name == node.op_type && function.domain == node.domain &&
           function.overload == node.overload;
  });
  return found == functions.end() ? nullptr : &*found;
}

std::vector<NodeProto> function_nodes(const FunctionProto& function, const NodeProto& call) {
  Arguments arguments;
  for (const AttributeProto& attribute : function.defaults) arguments[attribute.name] = &attribute;
  // One without a default that the call does not give is not there in the body either: the operators that
  // refer to it have their own defaults, or say that they need it.
  for (const AttributeProto& attribute : call.attributes) arguments[attribute.name] = &attribute;
  std::vector<NodeProto> nodes;
  for (const NodeProto& node : function.body.nodes) nodes.push_back(bound(node, arguments));
  return nodes;
}

int64_t function_opset(const FunctionProto& function, int64_t outer) {
  const auto found = function.opsets.find("");
  return found == function.opsets.end() ? outer : found->second;
}

}  // namespace tensormill::frontend::onnx
