#include "compiler/frontend/tflite/file_graph.h"

#include <set>

#include "compiler/frontend/facts/facts.h"
#include "compiler/frontend/tflite/options.h"

namespace tensormill::frontend::tflite {

namespace {

std::string paths_of(size_t subgraph) { return std::to_string(subgraph) + ":"; }

/// Names of a subgraph's tensors, which may be empty and stand twice there.
class TensorNames {
public:
  explicit TensorNames(const Subgraph& graph) : graph_(graph) {
    std::set<std::string_view> seen;
    for (const Tensor& tensor : graph.tensors)
      if (!seen.insert(tensor.name).second) repeated_.insert(tensor.name);
  }

  std::string of(int32_t index) const {
    constexpr size_t kLongest = 500;
    if (index < 0) return {};
    const std::string_view name = graph_.tensors[static_cast<size_t>(index)].name;
    const bool is_unique = !name.empty() && name.size() <= kLongest && !repeated_.contains(name);
    return std::string(name.substr(0, kLongest)) + (is_unique ? "" : "#" + std::to_string(index));
  }

  std::vector<std::string> of(Ints tensors) const {
    std::vector<std::string> names;
    for (const int32_t tensor : tensors) names.push_back(of(tensor));
    return names;
  }

private:
  const Subgraph& graph_;
  std::set<std::string_view> repeated_;
};

std::string type_of(const Tensor& tensor) {
  const std::optional<DType> dtype = dtype_of(tensor.type);
  return shown_type(dtype ? dtype_name(*dtype) : type_name(tensor.type), shown_dims(tensor.signature));
}

/// The subgraphs that an operator calls, and those that these call.
class CalledSubgraphs {
public:
  explicit CalledSubgraphs(const Model& model) : direct_(model.subgraphs.size()) {
    for (size_t i = 0; i < model.subgraphs.size(); ++i)
      for (const Operator& node : model.subgraphs[i].operators)
        for (const int64_t named : named_subgraphs(node.options))
          direct_[i].insert(static_cast<size_t>(named));
  }

  std::set<size_t> of(const Operator& node, FileGraph& shown) const {
    std::set<size_t> called;
    std::vector<size_t> open;
    for (const int64_t named : named_subgraphs(node.options)) open.push_back(static_cast<size_t>(named));
    while (!open.empty()) {
      const size_t index = open.back();
      open.pop_back();
      // A file may have many operators, each of which leads to many subgraphs.
      if (!called.insert(index).second || !shown.takes(sizeof(size_t))) continue;
      open.insert(open.end(), direct_[index].begin(), direct_[index].end());
    }
    return called;
  }

private:
  std::vector<std::set<size_t>> direct_;
};

}  // namespace

std::string operator_label(const Model& model, const Subgraph& graph, size_t index) {
  const Operator& node = graph.operators[index];
  for (const int32_t output : node.outputs) {
    if (output < 0) continue;
    const std::string_view name = graph.tensors[static_cast<size_t>(output)].name;
    if (!name.empty()) return std::string(name.substr(0, 500));
  }
  return operator_name(model.codes[node.code]) + "#" + std::to_string(index);
}

std::string operator_path(const Model& model, const Subgraph& graph, size_t index) {
  return paths_of(static_cast<size_t>(&graph - model.subgraphs.data())) + std::to_string(index);
}

FileGraph file_graph(const Model& model, const EntryPoint& entry) {
  const Subgraph& graph = model.subgraphs[entry.subgraph];
  const TensorNames names(graph);
  const CalledSubgraphs called(model);
  FileGraph shown(graph.name);
  const auto type_at = [&](int32_t tensor) { return type_of(graph.tensors[static_cast<size_t>(tensor)]); };
  for (const int32_t input : graph.inputs)
    if (input >= 0) shown.add_input(names.of(input), type_at(input));
  for (const int32_t output : graph.outputs)
    if (output >= 0) shown.add_output(names.of(output), type_at(output));
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& node = graph.operators[i];
    // Operators may share one list of tensors.
    if (!shown.takes(8 * (node.inputs.size() + node.outputs.size()))) break;
    for (const Ints tensors : {node.inputs, node.outputs}) {
      for (const int32_t tensor : tensors)
        if (tensor >= 0)
          shown.add_value(names.of(tensor), type_at(tensor),
                          graph.tensors[static_cast<size_t>(tensor)].is_constant);
    }
    FileNode made{.op = operator_name(model.codes[node.code]),
                  .label = operator_label(model, graph, i),
                  .path = operator_path(model, graph, i),
                  .within = {},
                  .inputs = names.of(node.inputs),
                  .outputs = names.of(node.outputs)};
    for (const size_t subgraph : called.of(node, shown)) made.within.push_back(paths_of(subgraph));
    shown.add_node(std::move(made));
  }
  return shown;
}

}  // namespace tensormill::frontend::tflite
