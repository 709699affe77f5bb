#include <map>

#include "compiler/frontend/cntk/walk.h"

namespace tensormill::frontend::cntk {

namespace {

std::string_view type_name(const Variable& variable) {
  const std::optional<DType> dtype = dtype_of(variable.dtype);
  return dtype ? dtype_long_name(*dtype) : "unknown";
}

std::string value_name(const Model& model, const Source& source) {
  return source.is_variable ? std::string(model.variables[source.index].uid)
                            : output_uid(model.functions[source.index], source.output);
}

}  // namespace

std::string shown_type_of(const Variable& variable) {
  const std::optional<DType> dtype = dtype_of(variable.dtype);
  return dtype ? shown_type(dtype_name(*dtype), shown_dims(tensor_dims(variable))) : std::string();
}

FileFacts facts_of(const Model& model) {
  const Walk walk = cntk::walk(model);
  FileFacts facts;
  facts.format = "cntk";
  facts.version = std::to_string(walk.order.size()) + " operators";
  for (const Input& input : walk.inputs) {
    const Variable& variable = model.variables[input.variable];
    FileValue value;
    value.name = input.name;
    value.type = std::string(type_name(variable));
    value.shape = shown_dims(tensor_dims(variable));
    facts.inputs.push_back(std::move(value));
  }
  for (const Output& output : walk.outputs) facts.outputs.push_back(unshaped_value(output.name));
  for (const size_t index : walk.order) ++facts.ops[model.functions[index].op];
  for (const Variable& variable : model.variables)
    if (variable.value)
      facts.add_weight(count_elements(variable.value->dims), dtype_of(variable.value->dtype));
  return facts;
}

FileGraph file_graph(const Model& model, const Walk& walk) {
  FileGraph shown(model.name);
  std::map<Source, std::string> names;
  for (const Input& input : walk.inputs) {
    const Variable& variable = model.variables[input.variable];
    names.emplace(Source{true, input.variable, 0}, input.name);
    shown.add_input(input.name, shown_type_of(variable));
  }
  for (const Output& output : walk.outputs) {
    names.emplace(output.source, output.name);
    shown.add_output(output.name, "");
  }
  const auto name_of = [&](const Source& source) {
    const auto found = names.find(source);
    return found == names.end() ? value_name(model, source) : found->second;
  };
  for (const size_t index : walk.order) {
    if (shown.is_full()) break;
    const Function& function = model.functions[index];
    FileNode made{.op = function.op,
                  .label = std::string((function.name.empty() ? function.uid : function.name).substr(0, 500)),
                  .path = std::to_string(index)};
    for (const Source& operand : walk.operands[index]) {
      made.inputs.push_back(name_of(operand));
      const Variable* variable = operand.is_variable ? &model.variables[operand.index] : nullptr;
      if (variable != nullptr && variable->value && dtype_of(variable->dtype))
        shown.add_value(made.inputs.back(), shown_type_of(*variable), true);
    }
    for (size_t i = 0; i < count_outputs(function); ++i) made.outputs.push_back(name_of({false, index, i}));
    shown.add_node(std::move(made));
  }
  return shown;
}

}  // namespace tensormill::frontend::cntk
