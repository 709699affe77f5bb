#include <algorithm>
#include <sstream>

#include "compiler/frontend/coreml/import.h"

namespace tensormill::frontend::coreml {

namespace {

/// "0.5", as short as it can be.
std::string shown(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

FileValue file_value(std::string_view name, const ValueType* type, const Feature* feature) {
  FileValue value;
  value.name = name;
  value.has_rank = type != nullptr && type->tensor.has_rank;
  if (type != nullptr) {
    const std::optional<DType> dtype = dtype_of(type->tensor.dtype);
    const bool is_state = type->kind == ValueKind::kState;
    value.type = type->kind == ValueKind::kDictionary            ? "dictionary"
                 : type->kind != ValueKind::kTensor && !is_state ? "list"
                 : dtype                                         ? std::string(dtype_long_name(*dtype))
                                                                 : std::string(type_name(type->tensor.dtype));
    if (is_state) value.note = "state";
    value.shape = shown_dims(type->tensor.dims);
  }
  if (feature == nullptr) return value;
  if (!feature->note.empty()) value.note = feature->note;
  if (feature->is_optional) {
    const std::string said = "optional, " + shown(feature->otherwise) + " where it is not given";
    value.note += (value.note.empty() ? "" : ", ") + said;
  }
  return value;
}

/// Elements that lie in files of weights, and lists of real numbers in the program.
void count_weights(const Value& value, FileFacts& facts) {
  const TensorType& type = value.type.tensor;
  const bool is_list = std::holds_alternative<Elements>(value.data) && !type.dims.empty() &&
                       (type.dtype == DataType::kFloat16 || type.dtype == DataType::kFloat32);
  if (!std::holds_alternative<BlobRef>(value.data) && !is_list) return;
  int64_t elements = 1;
  for (const int64_t dim : type.dims)
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements)) return;
  facts.parameters += elements;
  facts.weight_bytes += static_cast<int64_t>(packed_bytes(type.dtype, static_cast<uint64_t>(elements)));
}

void count_operations(const Block& block, FileFacts& facts) {
  for (const Operation& node : block.operations) {
    if (node.type != "const") ++facts.ops[std::string(node.type)];
    for (const auto& [name, value] : node.attributes) count_weights(value, facts);
    for (const auto& [name, bindings] : node.inputs)
      for (const Binding& binding : bindings)
        if (binding.value != nullptr) count_weights(*binding.value, facts);
    for (const Block& inner : node.blocks) count_operations(inner, facts);
  }
}

}  // namespace

FileFacts facts_of(const Model& model, std::string_view format) {
  FileFacts facts;
  facts.format = format;
  const Function& function = entry_function(model, "");
  facts.version = "specification " + std::to_string(model.specification) + ", " + std::string(function.opset);
  for (const NamedType& input : function.inputs)
    facts.inputs.push_back(file_value(input.name, &input.type, model.input(function.name, input.name)));
  for (const std::string& output : output_names(function))
    facts.outputs.push_back(file_value(output, type_of(function, output), nullptr));
  for (const Function& each : model.functions) count_operations(each.block, facts);
  if (model.functions.size() > 1) {
    std::string names;
    for (size_t i = 0; i < std::min<size_t>(model.functions.size(), 32); ++i)
      names += (i == 0 ? "" : ", ") + std::string(model.functions[i].name.substr(0, 200));
    facts.notes.emplace_back("functions", names);
  }
  if (!model.description.empty()) facts.notes.emplace_back("description", model.description.substr(0, 200));
  if (!model.author.empty()) facts.notes.emplace_back("author", model.author.substr(0, 200));
  if (!model.version.empty()) facts.notes.emplace_back("version", model.version.substr(0, 200));
  return facts;
}

}  // namespace tensormill::frontend::coreml
