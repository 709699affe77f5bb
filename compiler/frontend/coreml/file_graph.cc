#include "compiler/frontend/coreml/file_graph.h"

#include "compiler/frontend/coreml/import.h"

namespace tensormill::frontend::coreml {

namespace {

std::string shown_type_of(const ValueType& type) {
  if (type.kind != ValueKind::kTensor || !type.tensor.has_rank) return {};
  const std::optional<DType> dtype = dtype_of(type.tensor.dtype);
  return shown_type(dtype ? dtype_name(*dtype) : type_name(type.tensor.dtype), shown_dims(type.tensor.dims));
}

}  // namespace

std::string operation_label(const Operation& node, size_t index) {
  if (!node.label.empty()) return std::string(node.label.substr(0, 500));
  if (!node.outputs.empty()) return std::string(node.outputs.front().name.substr(0, 500));
  return std::string(node.type.substr(0, 500)) + "#" + std::to_string(index);
}

std::vector<std::string> operand_names(const Operation& node) {
  std::vector<std::string> names;
  for (const auto& [operand, bindings] : node.inputs)
    for (const Binding& binding : bindings)
      if (binding.value == nullptr) names.emplace_back(binding.name);
  return names;
}

std::string path_within(const std::string& around, size_t index, size_t block) {
  return around + std::to_string(index) + "/" + std::to_string(block) + ":";
}

FileGraph file_graph(const Function& function) {
  FileGraph shown(function.name);
  for (const NamedType& input : function.inputs) shown.add_input(input.name, shown_type_of(input.type));
  for (const std::string& output : output_names(function)) shown.add_output(output, "");
  const Block& block = function.block;
  for (size_t i = 0; i < block.operations.size() && !shown.is_full(); ++i) {
    const Operation& node = block.operations[i];
    const bool is_constant = node.type == "const";
    for (const NamedType& output : node.outputs)
      shown.add_value(output.name, shown_type_of(output.type), is_constant);
    FileNode made{.op = std::string(node.type.substr(0, 200)),
                  .label = operation_label(node, i),
                  .path = std::to_string(i),
                  .within = {},
                  .is_aside = is_constant};
    for (size_t k = 0; k < node.blocks.size(); ++k) made.within.push_back(path_within("", i, k));
    made.inputs = operand_names(node);
    for (const NamedType& output : node.outputs) made.outputs.emplace_back(output.name);
    shown.add_node(std::move(made));
  }
  return shown;
}

}  // namespace tensormill::frontend::coreml
