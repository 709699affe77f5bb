#include "compiler/frontend/tensorflow/graph_json.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "runtime/base/base64.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

namespace {

[[noreturn]] void wrong_json(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }

const Json& object(const Json& json, const char* what) {
  if (!json.is_object()) wrong_json(std::string(what) + " is no object");
  return json;
}

/// The elements of a member that is a list; none where it is not there.
const Json& list(const Json& json, const char* key) {
  static const Json none = Json::array();
  const auto found = json.find(key);
  if (found == json.end()) return none;
  if (!found->is_array()) wrong_json("member \"" + std::string(key) + "\" is no list");
  return *found;
}

std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return "";
  if (!found->is_string()) wrong_json("member \"" + std::string(key) + "\" is no text");
  return found->get<std::string>();
}

/// Integers of 64 bits stand as texts.
int64_t integer(const Json& json) {
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float() && json.get<double>() == std::floor(json.get<double>()) &&
      std::abs(json.get<double>()) < 9e15)
    return static_cast<int64_t>(json.get<double>());
  if (!json.is_string()) wrong_json("an integer is of another kind");
  const auto& digits = json.get_ref<const std::string&>();
  int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size())
    wrong_json("\"" + digits.substr(0, 40) + "\" is no integer");
  return value;
}

double real(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (json == "Infinity") return std::numeric_limits<double>::infinity();
  if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
  wrong_json("a number is of another kind");
}

bool truth(const Json& json) {
  if (!json.is_boolean()) wrong_json("a bool is of another kind");
  return json.get<bool>();
}

TensorShape shape_of(const Json& json) {
  TensorShape shape;
  const auto unknown = object(json, "a shape").find("unknownRank");
  shape.has_rank = unknown == json.end() || !truth(*unknown);
  for (const Json& dim : list(json, "dim")) {
    const auto size = object(dim, "a dim").find("size");
    const int64_t extent = size == dim.end() ? 0 : integer(*size);
    if (extent < -1) wrong_json("a dim of " + std::to_string(extent));
    shape.dims.push_back(extent);
  }
  return shape;
}

const TensorValue* constant_of(const Node& node) {
  const auto found = node.attributes.find("value");
  const auto* value = found == node.attributes.end()
                          ? nullptr
                          : std::get_if<std::shared_ptr<const TensorValue>>(&found->second.value);
  return value == nullptr ? nullptr : value->get();
}

/// Whether a constant's elements stand in the message.
bool has_elements(const Node& node) {
  const TensorValue* tensor = constant_of(node);
  return tensor != nullptr && (!tensor->content.empty() || !tensor->floats.empty() ||
                               !tensor->doubles.empty() || !tensor->ints.empty() || !tensor->strings.empty());
}

/// Elements that stand nowhere would be read as zeros.
void check_constant(const Node& node) {
  if (constant_of(node) == nullptr) wrong_json("a constant without a tensor");
  const TensorValue& tensor = *constant_of(node);
  uint64_t bytes = static_cast<uint64_t>(type_bytes(tensor.dtype));
  bool is_empty = false;
  for (const int64_t dim : tensor.shape.dims) {
    is_empty = is_empty || dim == 0;
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      wrong_json("a constant without a shape");
  }
  if (!has_elements(node) && !is_empty) wrong_json("its elements are in no file of weights");
  if (!tensor.content.empty() && bytes > 0 && tensor.content.size() != bytes)
    wrong_json("a constant of " + std::to_string(tensor.content.size()) + " bytes, its shape and type say " +
               std::to_string(bytes));
}

}  // namespace

DataType data_type_of(const Json& json) {
  if (json.is_number_integer()) return static_cast<DataType>(json.get<int32_t>());
  if (!json.is_string()) wrong_json("a type is of another kind");
  std::string name = json.get<std::string>();
  static const std::map<std::string, DataType> names = {
#define TF_DATA_TYPE(name, type) {"DT_" #name, DataType::type},
#include "compiler/frontend/tensorflow/data_type_names.def"
#undef TF_DATA_TYPE
  };
  int32_t reference = 0;
  if (name.ends_with("_REF")) {
    name.resize(name.size() - 4);
    reference = 100;
  }
  const auto found = names.find(name);
  return found == names.end() ? DataType::kInvalid
                              : static_cast<DataType>(static_cast<int32_t>(found->second) + reference);
}

std::string_view GraphJsonReader::kept(std::string text) {
  texts_.push_back(std::move(text));
  return texts_.back();
}

std::string_view GraphJsonReader::kept_bytes(const Json& json) {
  if (!json.is_string()) wrong_json("bytes are no text of base64");
  return kept(from_base64(json.get_ref<const std::string&>(), ErrorCode::kInvalidModel));
}

TensorValue GraphJsonReader::tensor(const Json& json) {
  TensorValue to;
  const auto type = object(json, "a tensor").find("dtype");
  if (type != json.end()) to.dtype = data_type_of(*type);
  const auto shape = json.find("tensorShape");
  if (shape != json.end()) to.shape = shape_of(*shape);
  const auto content = json.find("tensorContent");
  if (content != json.end()) to.content = kept_bytes(*content);
  for (const Json& each : list(json, "floatVal")) to.floats.push_back(static_cast<float>(real(each)));
  for (const Json& each : list(json, "doubleVal")) to.doubles.push_back(real(each));
  for (const char* key : {"intVal", "int64Val", "uint32Val", "uint64Val", "halfVal"})
    for (const Json& each : list(json, key)) to.ints.push_back(integer(each));
  for (const Json& each : list(json, "boolVal")) to.ints.push_back(truth(each) ? 1 : 0);
  for (const Json& each : list(json, "stringVal")) to.strings.push_back(kept_bytes(each));
  return to;
}

FunctionRef GraphJsonReader::function_ref(const Json& json) {
  const auto attr = object(json, "a function").find("attr");
  return {kept(text(json, "name")), attr == json.end() ? Attributes() : attributes(*attr)};
}

AttrList GraphJsonReader::attr_list(const Json& json) {
  AttrList to;
  object(json, "a list");
  for (const Json& each : list(json, "s")) to.strings.push_back(kept_bytes(each));
  for (const Json& each : list(json, "i")) to.ints.push_back(integer(each));
  for (const Json& each : list(json, "f")) to.floats.push_back(static_cast<float>(real(each)));
  for (const Json& each : list(json, "b")) to.bools.push_back(truth(each));
  for (const Json& each : list(json, "type")) to.types.push_back(data_type_of(each));
  for (const Json& each : list(json, "shape")) to.shapes.push_back(shape_of(each));
  for (const Json& each : list(json, "tensor")) to.tensors.push_back(tensor(each));
  for (const Json& each : list(json, "func")) to.functions.push_back(function_ref(each));
  return to;
}

AttrValue GraphJsonReader::attr_value(const Json& json) {
  AttrValue to;
  for (const auto& [kind, value] : object(json, "an attribute").items()) {
    if (kind == "s") to.value = kept_bytes(value);
    if (kind == "i") to.value = integer(value);
    if (kind == "f") to.value = static_cast<float>(real(value));
    if (kind == "b") to.value = truth(value);
    if (kind == "type") to.value = data_type_of(value);
    if (kind == "shape") to.value = std::make_shared<const TensorShape>(shape_of(value));
    if (kind == "tensor") to.value = std::make_shared<const TensorValue>(tensor(value));
    if (kind == "list") to.value = std::make_shared<const AttrList>(attr_list(value));
    if (kind == "func") to.value = std::make_shared<const FunctionRef>(function_ref(value));
    if (kind == "placeholder") to.value = AttrPlaceholder{kept(text(json, "placeholder"))};
  }
  return to;
}

Attributes GraphJsonReader::attributes(const Json& json) {
  Attributes to;
  for (const auto& [name, value] : object(json, "the attributes").items()) to[kept(name)] = attr_value(value);
  return to;
}

Node GraphJsonReader::node(const Json& json) {
  nodes_.spend(1);
  const std::string name = text(object(json, "a node"), "name"), op = text(json, "op");
  if (name.empty() || op.empty()) wrong_json("a node without a name or an operator");
  try {
    Node to;
    to.name = kept(name);
    to.op = kept(op);
    for (const Json& input : list(json, "input")) {
      if (!input.is_string()) wrong_json("an input is no text");
      to.inputs.push_back(kept(input.get<std::string>()));
    }
    const auto attr = json.find("attr");
    if (attr != json.end()) to.attributes = attributes(*attr);
    if (to.op != "Const") return to;
    // Nodes of functions may have names of the graph's; what stands in its place is no other's.
    std::optional<TensorValue> value = has_elements(to) ? std::nullopt : weights_(name);
    if (value) to.attributes["value"].value = std::make_shared<const TensorValue>(*std::move(value));
    check_constant(to);
    return to;
  } catch (Error& error) {
    error.add_context("node \"" + name.substr(0, 200) + "\"");
    throw;
  }
}

Argument GraphJsonReader::argument(const Json& json) {
  Argument to;
  to.name = kept(text(object(json, "an argument"), "name"));
  const auto type = json.find("type");
  if (type != json.end()) to.type = data_type_of(*type);
  to.number_attr = kept(text(json, "numberAttr"));
  to.type_list_attr = kept(text(json, "typeListAttr"));
  return to;
}

Function GraphJsonReader::function(const Json& json) {
  nodes_.spend(1);
  Function to;
  const auto signature = object(json, "a function").find("signature");
  if (signature == json.end()) wrong_json("a function without a signature");
  to.name = kept(text(object(*signature, "a signature"), "name"));
  for (const Json& each : list(*signature, "inputArg")) to.inputs.push_back(argument(each));
  for (const Json& each : list(*signature, "outputArg")) to.outputs.push_back(argument(each));
  for (const Json& each : list(json, "nodeDef")) to.nodes.push_back(node(each));
  const auto results = json.find("ret");
  if (results != json.end()) {
    for (const auto& [name, value] : object(*results, "ret").items()) {
      if (!value.is_string()) wrong_json("a result is no text");
      to.results[kept(name)] = kept(value.get<std::string>());
    }
  }
  const auto attr = json.find("attr");
  if (attr != json.end()) to.attributes = attributes(*attr);
  return to;
}

Graph GraphJsonReader::graph(const Json& json) {
  Graph to;
  for (const Json& each : list(object(json, "modelTopology"), "node")) to.nodes.push_back(node(each));
  const auto library = json.find("library");
  if (library != json.end()) {
    for (const Json& each : list(object(*library, "library"), "function")) {
      Function made = function(each);
      const std::string_view name = made.name;
      if (name.empty() || !to.functions.emplace(name, std::move(made)).second)
        wrong_json("function \"" + std::string(name.substr(0, 200)) + "\" has no name, or stands twice");
    }
  }
  const auto versions = json.find("versions");
  if (versions != json.end() && versions->is_object() && versions->contains("producer"))
    to.producer = integer(versions->at("producer"));
  if (to.nodes.empty()) wrong_json("the graph has no node");
  return to;
}

TensorInfo GraphJsonReader::tensor_info(const Json& json) {
  TensorInfo to;
  to.name = text(object(json, "a tensor of the signature"), "name");
  const auto type = json.find("dtype");
  if (type != json.end()) to.dtype = data_type_of(*type);
  const auto shape = json.find("tensorShape");
  to.shape.has_rank = shape != json.end();
  if (to.shape.has_rank) to.shape = shape_of(*shape);
  return to;
}

}  // namespace tensormill::frontend::tensorflow
