#include "compiler/frontend/cntk/model.h"

#include "compiler/build/rows.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::cntk {

namespace {

struct OpType {
  int64_t number;
  const char* name;
};
constexpr OpType kOpTypes[] = {
#define CNTK_OP_TYPE(number, name) {number, name},
#include "compiler/frontend/cntk/op_types.def"
#undef CNTK_OP_TYPE
};
constexpr int64_t kBlock = 57;

[[noreturn]] void invalid(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }

std::string shown(std::string_view text) { return "\"" + std::string(text.substr(0, 200)) + "\""; }

/// The value of a key, which is of that kind. Throws Error(kInvalidModel).
template <typename T>
const T& required(const Dictionary& from, std::string_view key) {
  const Value* value = from.find(key);
  const T* held = value == nullptr ? nullptr : value->as<T>();
  if (held == nullptr) invalid("a dictionary without " + shown(key) + ", or with another kind of it");
  return *held;
}
template <typename T>
T optional(const Dictionary& from, std::string_view key) {
  const Value* value = from.find(key);
  const T* held = value == nullptr ? nullptr : value->as<T>();
  return held == nullptr ? T() : *held;
}

std::vector<std::string_view> texts_of(const Dictionary& from, std::string_view key) {
  std::vector<std::string_view> texts;
  for (const Value& each : required<List>(from, key)) {
    const auto* text = each.as<std::string_view>();
    if (text == nullptr) invalid(shown(key) + " has what is no text");
    texts.push_back(*text);
  }
  return texts;
}

std::string op_name(int64_t number) {
  for (const OpType& each : kOpTypes)
    if (each.number == number) return each.name;
  return "operator " + std::to_string(number);
}

Variable variable_of(const Dictionary& from) {
  Variable to;
  to.uid = required<std::string_view>(from, "uid");
  to.name = optional<std::string_view>(from, "name");
  const int64_t kind = required<int64_t>(from, "kind");
  if (kind < 0 || kind > static_cast<int64_t>(VariableKind::kPlaceholder))
    invalid("variable " + shown(to.uid) + " is of the kind " + std::to_string(kind));
  to.kind = static_cast<VariableKind>(kind);
  to.dtype = required<int64_t>(from, "data_type");
  to.dims = required<Dims>(from, "shape");
  for (const Value& each : optional<List>(from, "dynamic_axis")) {
    const Axis* axis = each.as<Axis>();
    if (axis == nullptr) invalid("variable " + shown(to.uid) + " has a dynamic axis that is none");
    to.dynamic_axes.push_back(*axis);
  }
  const bool has_value = to.kind == VariableKind::kParameter || to.kind == VariableKind::kConstant;
  if (has_value) to.value = required<Array>(from, "value");
  return to;
}

Block block_of(const Dictionary& from) {
  Block block;
  block.root = required<std::string_view>(required<Dictionary>(from, "block_function_composite"), "root");
  const std::vector<std::string_view> keys = texts_of(from, "block_function_composite_arguments_map_keys"),
                                      values =
                                          texts_of(from, "block_function_composite_arguments_map_values");
  if (keys.size() != values.size()) invalid("a block's arguments have other place holders");
  for (size_t i = 0; i < keys.size(); ++i) block.arguments.emplace_back(keys[i], values[i]);
  return block;
}

Function function_of(const Dictionary& from) {
  Function to;
  to.uid = required<std::string_view>(from, "uid");
  to.name = optional<std::string_view>(from, "name");
  to.inputs = texts_of(from, "inputs");
  const std::string_view type = required<std::string_view>(from, "type");
  if (type != "PrimitiveFunction") {
    // Code of the model's author, which is not in the file.
    to.op = std::string(type.substr(0, 200));
    return to;
  }
  const int64_t number = required<int64_t>(from, "op");
  to.attributes = optional<Dictionary>(from, "attributes");
  to.op = op_name(number);
  if (number != kBlock) return to;
  to.block = block_of(from);
  to.op = std::string(required<std::string_view>(from, "block_function_op_name").substr(0, 200));
  return to;
}

}  // namespace

std::optional<DType> dtype_of(int64_t number) {
  constexpr build::NumberedType kTypes[] = {{1, DType::kFloat32}, {2, DType::kFloat64}, {4, DType::kFloat16}};
  return build::dtype_numbered(kTypes, number);
}

Model read_model(std::string_view bytes) {
  const Dictionary all = read_dictionary(bytes);
  const std::string_view type = optional<std::string_view>(all, "type");
  if (type != "CompositeFunction")
    invalid("the file has a dictionary of type " + shown(type) + ", no function: save it by Function.save");
  Model model;
  model.name = optional<std::string_view>(all, "name");
  model.root = required<std::string_view>(all, "root");
  for (const Value& each : required<List>(all, "inputs")) {
    const auto* variable = each.as<Dictionary>();
    if (variable == nullptr) invalid("an input is no dictionary");
    model.variables.push_back(variable_of(*variable));
  }
  for (const Value& each : required<List>(all, "primitive_functions")) {
    const auto* function = each.as<Dictionary>();
    if (function == nullptr) invalid("a function is no dictionary");
    model.functions.push_back(function_of(*function));
  }
  return model;
}

}  // namespace tensormill::frontend::cntk
