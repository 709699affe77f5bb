#include "compiler/frontend/pytorch/file_graph.h"

#include <vector>

#include "compiler/frontend/pytorch/schema.h"

namespace tensormill::frontend::pytorch {

namespace {

void add_numbers(const Json& value, std::set<std::string, std::less<>>& names) {
  if (value.is_array())
    for (const Json& each : value) add_numbers(each, names);
  if (value.is_object() && value.contains("as_name") && value.at("as_name").is_string())
    names.insert(value.at("as_name").get<std::string>());
}

std::string type_of(const Graph& graph, const std::string& name) {
  const auto found = graph.tensors.find(name);
  if (found == graph.tensors.end()) return {};
  const std::optional<DType> dtype = dtype_of(found->second.dtype);
  std::vector<std::string> dims;
  for (const SymDim& size : found->second.sizes) dims.push_back(to_string(size));
  return shown_type(dtype ? dtype_name(*dtype) : scalar_name(found->second.dtype), dims);
}

/// Tensors and numbers.
void add_names(const Argument& argument, std::vector<std::string>& names) {
  names.insert(names.end(), argument.names.begin(), argument.names.end());
  const auto numbers = number_names(argument.value);
  names.insert(names.end(), numbers.begin(), numbers.end());
}

}  // namespace

std::string node_label(const Node& node, size_t index) {
  for (const Argument& output : node.outputs)
    if (!output.names.empty() && !output.names.front().empty()) return output.names.front().substr(0, 500);
  return node.name.empty() ? node.target.substr(0, 500) + "#" + std::to_string(index)
                           : node.name.substr(0, 500);
}

std::string paths_within(const std::string& around, const Node& node, size_t index,
                         const NamedArgument& input) {
  return around + node_label(node, index) + "/" + input.name + "/";
}

std::set<std::string, std::less<>> number_names(const Json& value) {
  std::set<std::string, std::less<>> names;
  add_numbers(value, names);
  return names;
}

FileGraph file_graph(const Program& program, const Ports& ports) {
  const Graph& graph = program.graph;
  FileGraph shown("program");
  for (const InputSpec& input : program.inputs)
    if (program.stored(input) != nullptr) shown.add_value(input.name, type_of(graph, input.name), true);
  for (const Port& port : ports.inputs) shown.add_input(port.value, type_of(graph, port.value));
  for (const Port& port : ports.outputs) shown.add_output(port.value, type_of(graph, port.value));
  for (size_t i = 0; i < graph.nodes.size() && !shown.is_full(); ++i) {
    const Node& node = graph.nodes[i];
    FileNode made{.op = std::string(short_target(node.target)).substr(0, 200),
                  .label = node_label(node, i),
                  .path = {},
                  .within = {node_label(node, i) + "/"}};
    for (const NamedArgument& input : node.inputs) add_names(input.argument, made.inputs);
    for (const Argument& output : node.outputs) {
      add_names(output, made.outputs);
      for (const std::string& name : output.names) shown.add_value(name, type_of(graph, name));
    }
    shown.add_node(std::move(made));
  }
  return shown;
}

}  // namespace tensormill::frontend::pytorch
