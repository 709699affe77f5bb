#include <algorithm>
#include <set>

#include "compiler/frontend/tensorflow/file_graph.h"
#include "compiler/frontend/tensorflow/model.h"

namespace tensormill::frontend::tensorflow {

namespace {

void add_shape(const TensorShape& shape, FileValue& value) {
  value.has_rank = shape.has_rank;
  value.shape = shown_dims(shape.dims);
}

void count_node(const Node& node, FileFacts& facts) {
  ++facts.ops[std::string(node.op.substr(0, 200))];
  if (node.op != "Const") return;
  const auto value = node.attributes.find("value");
  if (value == node.attributes.end()) return;
  if (const auto* tensor = std::get_if<std::shared_ptr<const TensorValue>>(&value->second.value))
    facts.add_weight(count_elements((*tensor)->shape.dims), type_bytes((*tensor)->dtype));
}

/// The nodes that the named ones need, and those of the functions that they call.
class Reach {
public:
  Reach(const Graph& graph, FileFacts& facts) : graph_(graph), facts_(facts) {
    for (const Node& node : graph.nodes) by_name_.emplace(node.name, &node);
  }

  void from(std::string_view tensor) {
    std::vector<std::string_view> wanted = {tensor};
    std::vector<std::string_view> called;
    while (!wanted.empty()) {
      std::string_view name = wanted.back();
      wanted.pop_back();
      if (name.starts_with('^')) name.remove_prefix(1);
      name = name.substr(0, name.find(':'));
      const auto found = by_name_.find(name);
      if (found == by_name_.end() || !seen_.insert(name).second) continue;
      count_node(*found->second, facts_);
      add_called(*found->second, called);
      wanted.insert(wanted.end(), found->second->inputs.begin(), found->second->inputs.end());
    }
    functions(std::move(called));
  }

private:
  void functions(std::vector<std::string_view> called) {
    while (!called.empty()) {
      const std::string_view name = called.back();
      called.pop_back();
      const auto found = graph_.functions.find(name);
      if (found == graph_.functions.end() || !seen_functions_.insert(name).second) continue;
      for (const Node& node : found->second.nodes) {
        count_node(node, facts_);
        add_called(node, called);
      }
    }
  }

  const Graph& graph_;
  FileFacts& facts_;
  std::map<std::string_view, const Node*> by_name_;
  std::set<std::string_view> seen_, seen_functions_;
};

FileValue placeholder(const Node& node) {
  FileValue value = unshaped_value(std::string(node.name.substr(0, 1000)));
  const auto dtype = node.attributes.find("dtype");
  if (dtype != node.attributes.end())
    if (const auto* type = std::get_if<DataType>(&dtype->second.value)) value.type = type_name(*type);
  const auto shape = node.attributes.find("shape");
  if (shape != node.attributes.end())
    if (const auto* dims = std::get_if<std::shared_ptr<const TensorShape>>(&shape->second.value))
      add_shape(**dims, value);
  return value;
}

}  // namespace

FileFacts facts_of(const Graph& graph) {
  FileFacts facts;
  facts.format = "frozen-graph";
  facts.version =
      "producer " + std::to_string(graph.producer) + ", " + std::to_string(graph.nodes.size()) + " nodes";
  for (const Node& node : graph.nodes) {
    if (node.op == "Placeholder") facts.inputs.push_back(placeholder(node));
    count_node(node, facts);
  }
  for (const Node* node : result_nodes(graph))
    facts.outputs.push_back(
        unshaped_value(std::string(node->name.substr(0, 1000)), std::string(node->op.substr(0, 200))));
  return facts;
}

FileFacts facts_of(const SavedModel& model) {
  FileFacts facts;
  facts.format = "saved-model";
  facts.version = "TensorFlow " +
                  (model.tensorflow_version.empty() ? "of an unknown version" : model.tensorflow_version) +
                  ", " + std::to_string(model.graph.functions.size()) + " functions";
  std::string keys;
  for (const auto& [key, signature] : model.signatures)
    keys += (keys.empty() ? "" : ", ") + key.substr(0, 200);
  facts.notes.emplace_back("signatures", keys.substr(0, 2000));
  auto served = model.signatures.find("serving_default");
  if (served == model.signatures.end()) served = model.signatures.begin();
  if (served != model.signatures.end()) {
    const auto add = [](const std::map<std::string, TensorInfo>& tensors, std::vector<FileValue>& values) {
      for (const auto& [name, info] : tensors) {
        FileValue value;
        value.name = name;
        value.type = type_name(info.dtype);
        add_shape(info.shape, value);
        values.push_back(std::move(value));
      }
    };
    add(served->second.inputs, facts.inputs);
    add(served->second.outputs, facts.outputs);
    Reach reach(model.graph, facts);
    for (const auto& [name, info] : served->second.outputs) reach.from(info.name);
  }
  for (const auto& [key, variable] : model.variables) {
    if (type_bytes(variable.dtype) == 0) continue;
    facts.parameters += static_cast<int64_t>(variable.data.size()) / type_bytes(variable.dtype);
    facts.weight_bytes += static_cast<int64_t>(variable.data.size());
  }
  return facts;
}

}  // namespace tensormill::frontend::tensorflow
