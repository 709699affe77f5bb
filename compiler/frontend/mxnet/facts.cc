#include <algorithm>

#include "compiler/frontend/mxnet/import.h"

namespace tensormill::frontend::mxnet {

namespace {

/// 10901: 1.9.1
std::string version_text(int64_t version) {
  if (version <= 0) return "of no version that it says";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

FileFacts facts_of(const Model& model) {
  const Interface interface = interface_of(model);
  FileFacts facts;
  facts.format = "mxnet";
  facts.version = version_text(model.symbol.version);
  for (const Input& input : interface.inputs) {
    FileValue value;
    value.name = input.name;
    value.type = dtype_long_name(input.dtype);
    value.shape = shown_dims(input.dims);
    value.has_rank = input.has_rank;
    facts.inputs.push_back(std::move(value));
  }
  for (const Output& output : interface.outputs) facts.outputs.push_back(unshaped_value(output.name));
  for (size_t i = 0; i < model.symbol.nodes.size(); ++i)
    if (interface.is_used[i] && !model.symbol.nodes[i].is_variable()) ++facts.ops[model.symbol.nodes[i].op];
  for (const auto& [name, parameter] : model.parameters) {
    facts.parameters += num_elements(parameter.shape);
    facts.weight_bytes += static_cast<int64_t>(parameter.bytes.size());
  }
  return facts;
}

FileGraph file_graph(const Model& model, const Interface& interface) {
  FileGraph shown("main");
  for (const Input& input : interface.inputs)
    shown.add_input(input.name,
                    input.has_rank ? shown_type(dtype_name(input.dtype), shown_dims(input.dims)) : "");
  for (const Output& output : interface.outputs) shown.add_output(output.name, "");
  const std::vector<Node>& nodes = model.symbol.nodes;
  const auto value_name = [&](const Entry& entry) { return output_name(nodes[entry.node], entry.index); };
  for (size_t i = 0; i < nodes.size() && !shown.is_full(); ++i) {
    const Node& node = nodes[i];
    if (!interface.is_used[i]) continue;
    if (node.is_variable()) {
      const auto parameter = model.parameters.find(node.name);
      if (parameter == model.parameters.end()) continue;
      const Parameter& stored = parameter->second;
      shown.add_value(node.name, shown_type(dtype_name(stored.dtype), shown_dims(stored.shape)), true);
      continue;
    }
    FileNode made{.op = node.op.substr(0, 200), .label = node.name.substr(0, 500), .path = std::to_string(i)};
    for (const Entry& entry : node.inputs) made.inputs.push_back(value_name(entry));
    const size_t count = std::min<size_t>(node.outputs, 64);
    for (size_t k = 0; k < count; ++k) made.outputs.push_back(value_name({i, k}));
    shown.add_node(std::move(made));
  }
  return shown;
}

}  // namespace tensormill::frontend::mxnet
