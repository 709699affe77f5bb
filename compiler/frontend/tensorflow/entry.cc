// What can be called in a model: its signatures, or a graph from its placeholders to its results.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/frontend/tensorflow/import.h"
#include "compiler/frontend/tensorflow/schema.h"

namespace tensormill::frontend::tensorflow {

namespace {

const AttrValue* find_attribute(const Node& node, std::string_view name) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? nullptr : &found->second;
}

int64_t integer_of(const Node& node, std::string_view name, int64_t otherwise) {
  const AttrValue* attribute = find_attribute(node, name);
  const auto* value = attribute == nullptr ? nullptr : std::get_if<int64_t>(&attribute->value);
  return value == nullptr ? otherwise : *value;
}

/// How many outputs a node has that nothing reads.
int64_t output_count(const Node& node) {
  constexpr int64_t kMost = 1 << 16;
  if (node.op == "TopKV2" || node.op == "TopK") return 2;
  int64_t count = 1;
  if (node.op == "Split" || node.op == "SplitV") count = integer_of(node, "num_split", 1);
  if (node.op == "Unpack") count = integer_of(node, "num", 1);
  for (const char* types : {"Tout", "T"}) {
    const AttrValue* attribute = find_attribute(node, types);
    if (attribute == nullptr) continue;
    if (const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&attribute->value))
      count = static_cast<int64_t>((*list)->types.size());
  }
  return std::clamp<int64_t>(count, 1, kMost);
}

Port placeholder_port(const Node& node) {
  Port port{std::string(node.name), std::string(node.name), DataType::kInvalid, {false, {}}};
  if (const AttrValue* dtype = find_attribute(node, "dtype"))
    if (const auto* type = std::get_if<DataType>(&dtype->value)) port.dtype = *type;
  if (const AttrValue* shape = find_attribute(node, "shape"))
    if (const auto* dims = std::get_if<std::shared_ptr<const TensorShape>>(&shape->value))
      port.shape = **dims;
  return port;
}

/// The nodes that the results need, by their names.
std::set<std::string_view> needed_nodes(const Graph& graph) {
  std::map<std::string_view, const Node*> by_name;
  for (const Node& node : graph.nodes) by_name.emplace(node.name, &node);
  std::set<std::string_view> needed;
  std::vector<const Node*> open = result_nodes(graph);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!needed.insert(node->name).second) continue;
    for (const std::string_view input : node->inputs) {
      const auto found = by_name.find(input.substr(0, input.find(':')));
      if (found != by_name.end()) open.push_back(found->second);
    }
  }
  return needed;
}

std::vector<Port> ports_of(const std::map<std::string, TensorInfo>& tensors) {
  std::vector<Port> ports;
  for (const auto& [name, info] : tensors) ports.push_back({name, info.name, info.dtype, info.shape});
  return ports;
}

/// What restores variables and files, when the model is loaded.
bool is_called(const std::string& key) { return key != "__saved_model_init_op" && !key.empty(); }

}  // namespace

std::vector<const Node*> result_nodes(const Graph& graph) {
  std::set<std::string_view> read;
  for (const Node& node : graph.nodes) {
    for (std::string_view input : node.inputs) {
      if (input.starts_with('^')) input.remove_prefix(1);
      read.insert(input.substr(0, input.find(':')));
    }
  }
  std::vector<const Node*> found;
  for (const Node& node : graph.nodes) {
    const bool is_result = !read.contains(node.name) && node.op != "NoOp" && node.op != "Assert" &&
                           node.op != "PrintV2" && node.op != "Const" && node.op != "Placeholder" &&
                           !fills_table(node.op);
    if (is_result) found.push_back(&node);
  }
  return found;
}

EntryPoint graph_entry(const Graph& graph) {
  EntryPoint entry;
  const std::set<std::string_view> needed = needed_nodes(graph);
  for (const Node& node : graph.nodes)
    if (node.op == "Placeholder" && needed.contains(node.name))
      entry.inputs.push_back(placeholder_port(node));
  for (const Node* node : result_nodes(graph)) {
    const std::string name(node->name);
    for (int64_t i = 0; i < output_count(*node); ++i) {
      const std::string tensor = i == 0 ? name : name + ":" + std::to_string(i);
      entry.outputs.push_back({tensor, tensor, DataType::kInvalid, {false, {}}});
    }
  }
  if (entry.outputs.empty()) throw Error(ErrorCode::kInvalidModel, "the graph has no result");
  return entry;
}

std::vector<std::string> signature_names(const SavedModel& model) {
  std::vector<std::string> names;
  for (const auto& [key, signature] : model.signatures)
    if (is_called(key) && !signature.outputs.empty()) names.push_back(key);
  return names;
}

EntryPoint entry_point(const SavedModel& model, const std::string& key) {
  const std::vector<std::string> names = signature_names(model);
  if (names.empty())
    throw Error(ErrorCode::kNotSupported,
                "the model has no signature, so there is nothing in it that can be called: save it with "
                "signatures=..., or by model.export()");
  std::string wanted = key;
  if (wanted.empty()) {
    const bool has_default = std::find(names.begin(), names.end(), "serving_default") != names.end();
    wanted = has_default ? "serving_default" : names.front();
  }
  if (std::find(names.begin(), names.end(), wanted) == names.end()) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    throw Error(ErrorCode::kInvalidArgument,
                "the model has no signature \"" + wanted + "\"; it has " + known);
  }
  const Signature& signature = model.signatures.at(wanted);
  return {wanted, ports_of(signature.inputs), ports_of(signature.outputs)};
}

}  // namespace tensormill::frontend::tensorflow
