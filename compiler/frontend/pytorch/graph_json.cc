#include "compiler/frontend/pytorch/graph_json.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch {

namespace {

constexpr int kMaxGraphDepth = 32;
constexpr size_t kMaxRankOfMeta = 64;

[[noreturn]] void bad_program(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }

struct ArgumentRow {
  ArgumentKind kind;
  const char* name;
};
constexpr ArgumentRow kArguments[] = {
#define PT_ARGUMENT(enumerator, name) {ArgumentKind::enumerator, name},
#include "compiler/frontend/pytorch/arguments.def"
#undef PT_ARGUMENT
};

/// The only member of an object that says by its name what it is.
std::pair<std::string, const Json*> only_member(const Json& json, const std::string& of) {
  if (!json.is_object() || json.size() != 1) bad_program(of + " is no object of one member");
  return {json.begin().key(), &json.begin().value()};
}

std::string name_of(const Json& json, const std::string& of) { return json_text(json, "name", of); }

class GraphReader {
public:
  explicit GraphReader(wire::WorkBudget& values) : values_(values) {}

  Graph graph(const Json& json, int depth) {
    if (depth > kMaxGraphDepth) bad_program("graphs lie more than 32 deep in each other");
    Graph to;
    for (const Json& input : list(json, "inputs"))
      to.inputs.push_back(argument(input, "an input of the graph", depth));
    for (const Json& output : list(json, "outputs"))
      to.outputs.push_back(argument(output, "an output of the graph", depth));
    for (const Json& node : list(json, "nodes")) to.nodes.push_back(read_node(node, to.nodes.size(), depth));
    for (const auto& [name, meta] : object(json, "tensor_values").items()) {
      values_.spend(1);
      to.tensors.emplace(name, read_tensor_meta(meta, "value \"" + name + "\""));
    }
    if (json.contains("sym_int_values")) {
      for (const auto& [name, dim] : object(json, "sym_int_values").items()) {
        values_.spend(1);
        to.sym_ints.emplace(name, read_sym_dim(dim, "value \"" + name + "\""));
      }
    }
    check_names(to);
    return to;
  }

private:
  static const Json& list(const Json& json, const char* name) {
    const Json& value = json_member(json, name, "the graph");
    if (!value.is_array()) bad_program("member " + std::string(name) + " of the graph is no list");
    return value;
  }
  static const Json& object(const Json& json, const char* name) {
    const Json& value = json_member(json, name, "the graph");
    if (!value.is_object()) bad_program("member " + std::string(name) + " of the graph is no object");
    return value;
  }

  Node read_node(const Json& json, size_t index, int depth) {
    const std::string what = "node " + std::to_string(index);
    Node to;
    to.target = json_text(json, "target", what);
    if (json.contains("name") && json.at("name").is_string()) to.name = json.at("name").get<std::string>();
    const Json& inputs = json_member(json, "inputs", what);
    const Json& outputs = json_member(json, "outputs", what);
    if (!inputs.is_array() || !outputs.is_array())
      bad_program("inputs or outputs of " + what + " are no list");
    for (const Json& input : inputs) {
      const std::string name = json_text(input, "name", "an argument of " + what);
      to.inputs.push_back(
          {name, argument(json_member(input, "arg", what), what + ", argument " + name, depth)});
    }
    for (const Json& output : outputs) to.outputs.push_back(argument(output, what + ", an output", depth));
    to.module = module_of(json);
    return to;
  }

  /// The innermost module of "L__self__,,Net;L__self__conv,conv,torch.nn.Conv2d".
  static std::string module_of(const Json& node) {
    if (!node.contains("metadata") || !node.at("metadata").is_object()) return "";
    const Json& metadata = node.at("metadata");
    if (!metadata.contains("nn_module_stack") || !metadata.at("nn_module_stack").is_string()) return "";
    const auto stack = metadata.at("nn_module_stack").get<std::string>();
    const std::string last = stack.substr(stack.rfind(';') + 1);
    const size_t first = last.find(',');
    if (first == std::string::npos) return "";
    return last.substr(first + 1, last.find(',', first + 1) - first - 1);
  }

  Argument argument(const Json& json, const std::string& what, int depth) {
    values_.spend(1);
    const auto [member, value] = only_member(json, what);
    const auto* row =
        std::find_if(std::begin(kArguments), std::end(kArguments),
                     [&, &name = member](const ArgumentRow& each) { return name == each.name; });
    if (row == std::end(kArguments))
      throw Error(ErrorCode::kNotSupported, what + " is " + member + ", which this schema does not have");
    Argument to;
    to.kind = row->kind;
    read_value(*value, what, depth, to);
    return to;
  }

  void read_value(const Json& value, const std::string& what, int depth, Argument& to) {
    switch (to.kind) {
      case ArgumentKind::kTensor:
        to.names = {name_of(value, what)};
        return;
      case ArgumentKind::kTensors:
      case ArgumentKind::kOptionalTensors:
        to.names = names(value, what);
        return;
      case ArgumentKind::kOptionalTensor:
        to.names = {optional_name(value, what)};
        return;
      case ArgumentKind::kGraph:
        to.value = name_of(value, what);
        to.graph = std::make_shared<const Graph>(graph(json_member(value, "graph", what), depth + 1));
        return;
      default:
        to.value = value;
    }
  }

  std::vector<std::string> names(const Json& value, const std::string& what) {
    if (!value.is_array()) bad_program(what + " is no list of tensors");
    values_.spend(value.size());
    std::vector<std::string> all;
    for (const Json& each : value)
      all.push_back(each.contains("name") ? name_of(each, what) : optional_name(each, what));
    return all;
  }

  static std::string optional_name(const Json& value, const std::string& what) {
    const auto [member, inner] = only_member(value, what);
    if (member == "as_none") return "";
    if (member != "as_tensor") bad_program(what + " holds " + member + ", expected a tensor or none");
    return name_of(*inner, what);
  }

  /// Every tensor that is named has a type.
  static void check_names(const Graph& graph) {
    const auto check = [&](const Argument& argument, const std::string& of) {
      for (const std::string& name : argument.names)
        if (!name.empty() && !graph.tensors.contains(name))
          bad_program(of + " names tensor \"" + name + "\", which has no type");
    };
    for (const Argument& input : graph.inputs) check(input, "an input of the graph");
    for (const Argument& output : graph.outputs) check(output, "an output of the graph");
    for (const Node& node : graph.nodes) {
      for (const NamedArgument& input : node.inputs) check(input.argument, "node " + node.target);
      for (const Argument& output : node.outputs) check(output, "node " + node.target);
    }
  }

  wire::WorkBudget& values_;
};

/// Names in an input's or output's "arg": a tensor has one, a number may.
std::string spec_name(const Json& spec, const std::string& what) {
  const Json& arg = json_member(spec, "arg", what);
  if (arg.contains("name") && arg.at("name").is_string()) return arg.at("name").get<std::string>();
  if (!arg.is_object() || arg.size() != 1) bad_program(what + " has no argument");
  const Json& inner = arg.begin().value();
  for (const char* name : {"name", "as_name"})
    if (inner.is_object() && inner.contains(name) && inner.at(name).is_string())
      return inner.at(name).get<std::string>();
  return "";
}

InputSpec read_input_spec(const Json& json) {
  const auto [kind, spec] = only_member(json, "an input's specification");
  InputSpec to;
  to.kind = kind;
  const std::string what = "input specification " + kind;
  if (kind == "constant_input") {
    to.name = json_text(*spec, "name", what);
    to.value = json_member(*spec, "value", what);
    return to;
  }
  to.name = spec_name(*spec, what);
  for (const char* name : {"parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name"})
    if (spec->contains(name)) to.target = json_text(*spec, name, what);
  const bool is_weight = kind == "parameter" || kind == "buffer" || kind == "tensor_constant";
  if (is_weight && to.target.empty()) bad_program(what + " names no weight");
  return to;
}

OutputSpec read_output_spec(const Json& json) {
  const auto [kind, spec] = only_member(json, "an output's specification");
  OutputSpec to;
  to.kind = kind;
  to.name = spec_name(*spec, "output specification " + kind);
  for (const char* name : {"buffer_name", "parameter_name", "user_input_name"})
    if (spec->contains(name)) to.target = json_text(*spec, name, "output specification " + kind);
  return to;
}

}  // namespace

const Json& json_member(const Json& object, const char* name, const std::string& of) {
  if (!object.is_object() || !object.contains(name)) bad_program(of + " has no member " + name);
  return object.at(name);
}

std::string json_text(const Json& object, const char* name, const std::string& of) {
  const Json& value = json_member(object, name, of);
  if (!value.is_string()) bad_program("member " + std::string(name) + " of " + of + " is no text");
  return value.get<std::string>();
}

std::optional<int64_t> json_integer(const Json& object, const char* name, const std::string& of) {
  if (!object.is_object()) bad_program(of + " is no object");
  if (!object.contains(name) || object.at(name).is_null()) return std::nullopt;
  if (!object.at(name).is_number_integer())
    bad_program("member " + std::string(name) + " of " + of + " is no integer");
  return object.at(name).get<int64_t>();
}

SymDim read_sym_dim(const Json& json, const std::string& of) {
  SymDim to;
  const auto [kind, value] = only_member(json, of + ", a size");
  if (kind == "as_int") {
    if (!value->is_number_integer()) bad_program(of + ", a size is no integer");
    to.value = value->get<int64_t>();
    return to;
  }
  if (kind != "as_expr") bad_program(of + ", a size is " + kind);
  to.expr = parse_sym_expr(json_text(*value, "expr_str", of));
  if (value->contains("hint") && value->at("hint").is_object())
    to.hint = json_integer(value->at("hint"), "as_int", of);
  return to;
}

TensorMeta read_tensor_meta(const Json& json, const std::string& of) {
  TensorMeta to;
  to.dtype = static_cast<ScalarType>(json_integer(json, "dtype", of).value_or(0));
  if (scalar_name(to.dtype).empty())
    bad_program(of + " has element type " + std::to_string(static_cast<int64_t>(to.dtype)));
  for (const auto& [name, dims] : {std::pair{"sizes", &to.sizes}, std::pair{"strides", &to.strides}}) {
    const Json& list = json_member(json, name, of);
    if (!list.is_array() || list.size() > kMaxRankOfMeta)
      bad_program(of + ": " + name + " are no short list");
    for (const Json& dim : list) dims->push_back(read_sym_dim(dim, of));
  }
  to.storage_offset.value = 0;
  if (json.contains("storage_offset")) to.storage_offset = read_sym_dim(json.at("storage_offset"), of);
  to.layout = json_integer(json, "layout", of).value_or(0);
  if (json.contains("device") && json.at("device").is_object())
    to.device = json_text(json.at("device"), "type", of);
  return to;
}

Graph read_graph(const Json& json, wire::WorkBudget& values) { return GraphReader(values).graph(json, 0); }

void read_signature(const Json& json, Program& program) {
  const Json& inputs = json_member(json, "input_specs", "the signature");
  const Json& outputs = json_member(json, "output_specs", "the signature");
  if (!inputs.is_array() || !outputs.is_array()) bad_program("the signature has no lists");
  for (const Json& input : inputs) program.inputs.push_back(read_input_spec(input));
  for (const Json& output : outputs) program.outputs.push_back(read_output_spec(output));
  const auto same = [](const auto& specs, const auto& arguments, const char* what) {
    if (specs.size() != arguments.size())
      bad_program("the signature has " + std::to_string(specs.size()) + " " + what + ", the graph " +
                  std::to_string(arguments.size()));
    for (size_t i = 0; i < specs.size(); ++i)
      if (!arguments[i].names.empty() && arguments[i].names.front() != specs[i].name)
        bad_program(std::string(what) + " " + std::to_string(i) + " of the signature is \"" + specs[i].name +
                    "\", of the graph \"" + arguments[i].names.front() + "\"");
  };
  same(program.inputs, program.graph.inputs, "inputs");
  same(program.outputs, program.graph.outputs, "outputs");
}

}  // namespace tensormill::frontend::pytorch
