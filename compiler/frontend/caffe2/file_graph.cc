#include "compiler/frontend/caffe2/file_graph.h"

#include "compiler/frontend/caffe2/import.h"

namespace tensormill::frontend::caffe2 {

namespace {

std::string shown_type_of(const Input& input) {
  return input.dims ? shown_type(dtype_name(input.dtype), shown_dims(*input.dims)) : std::string();
}

void add_operators(const Net& net, bool is_init, FileGraph& shown) {
  for (size_t i = 0; i < net.operators.size() && !shown.is_full(); ++i) {
    const Operator& node = net.operators[i];
    const bool is_constant = is_init || is_fill(node.type);
    for (const std::string_view output : node.outputs) shown.add_value(output, "", is_constant);
    FileNode made{.op = std::string(node.type.substr(0, 200)),
                  .label = operator_label(node, i),
                  .path = operator_path(is_init, i),
                  .within = {},
                  .is_aside = is_constant};
    for (const std::string_view input : node.inputs) made.inputs.emplace_back(input);
    for (const std::string_view output : node.outputs) made.outputs.emplace_back(output);
    shown.add_node(std::move(made));
  }
}

}  // namespace

std::string operator_label(const Operator& node, size_t index) {
  if (!node.name.empty()) return std::string(node.name.substr(0, 500));
  if (!node.outputs.empty()) return std::string(node.outputs.front().substr(0, 500));
  return std::string(node.type.substr(0, 500)) + "#" + std::to_string(index);
}

std::string operator_path(bool is_init, size_t index) {
  return (is_init ? "init:" : "") + std::to_string(index);
}

FileGraph file_graph(const Model& model) {
  FileGraph shown(model.predict.name);
  for (const Input& input : model.inputs) shown.add_input(input.name, shown_type_of(input));
  for (const std::string& output : output_names(model)) shown.add_output(output, "");
  add_operators(model.init, true, shown);
  add_operators(model.predict, false, shown);
  return shown;
}

}  // namespace tensormill::frontend::caffe2
