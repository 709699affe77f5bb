#include "compiler/frontend/onnx/graph/maps.h"

#include <algorithm>

namespace tensormill::frontend::onnx {

namespace {

bool reads(const NodeProto& node, const std::string& name) {
  return std::find(node.inputs.begin(), node.inputs.end(), name) != node.inputs.end();
}

bool takes_map(const NodeProto& node) {
  return node.domain == "ai.onnx.ml" && (node.op_type == "CastMap" || node.op_type == "DictVectorizer");
}

/// Whether a node of the graph, or of one inside of it, reads the value otherwise than as a map.
bool is_read_otherwise(const GraphProto& graph, const std::string& name, bool is_inner) {
  for (const NodeProto& node : graph.nodes) {
    if (reads(node, name) && (is_inner || !takes_map(node))) return true;
    for (const AttributeProto& attribute : node.attributes) {
      for (const auto& inner : attribute.graphs) {
        if (is_read_otherwise(*inner, name, true)) return true;
      }
    }
  }
  const auto is_same = [&](const ValueInfoProto& value) { return value.name == name; };
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), is_same);
}

bool is_used(const GraphProto& graph, const std::string& name) {
  const auto has = [&](const auto& values) {
    return std::any_of(values.begin(), values.end(), [&](const auto& value) { return value.name == name; });
  };
  return has(graph.inputs) || has(graph.initializers) ||
         std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const NodeProto& node) {
           return std::find(node.outputs.begin(), node.outputs.end(), name) != node.outputs.end();
         });
}

ValueInfoProto part_of(const ValueInfoProto& map, const char* part, int32_t type) {
  ValueInfoProto value;
  value.name = map.name + part;
  value.is_tensor = true;
  value.kind = ValueKind::kTensor;
  value.elem_type = type;
  value.has_shape = true;
  value.shape = {map.name + ".entries"};
  return value;
}

}  // namespace

void split_maps(GraphProto& graph) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const ValueInfoProto map = graph.inputs[i];
    if (map.kind != ValueKind::kMap || is_read_otherwise(graph, map.name, false)) continue;
    const ValueInfoProto keys = part_of(map, ".keys", map.key_type),
                         values = part_of(map, ".values", map.elem_type);
    if (is_used(graph, keys.name) || is_used(graph, values.name)) continue;
    graph.inputs[i] = values;
    graph.inputs.insert(graph.inputs.begin() + static_cast<std::ptrdiff_t>(i), keys);
    for (NodeProto& node : graph.nodes) {
      if (reads(node, map.name)) node.inputs = {keys.name, values.name};
    }
  }
}

}  // namespace tensormill::frontend::onnx
