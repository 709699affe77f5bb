#include "compiler/frontend/tensorflow/file_graph.h"

#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "compiler/frontend/tensorflow/loaded_model.h"

namespace tensormill::frontend::tensorflow {

namespace {

constexpr int kMostShownDepth = 64;

/// A line break is in no name that TensorFlow makes.
std::string paths_of(std::string_view function) { return std::string(function) + "\n"; }

std::string_view node_of(std::string_view reference) {
  if (reference.starts_with('^')) reference.remove_prefix(1);
  return reference.substr(0, reference.find(':'));
}

/// Whose result is a constant of a package.
bool is_constant(std::string_view op) {
  return op == "Const" || op == "VarHandleOp" || op == "ReadVariableOp" || op == "VariableV2";
}

std::string type_of(const Port& port) {
  const std::optional<DType> dtype = dtype_of(port.dtype);
  std::vector<std::string> dims = {"..."};
  if (port.shape.has_rank) dims = shown_dims(port.shape.dims);
  return shown_type(dtype ? dtype_name(*dtype) : type_name(port.dtype), dims);
}

/// Draws what results need, with what it reads before it; each node makes one value.
class Drawing {
public:
  Drawing(const Graph& graph, FileGraph& shown) : graph_(graph), shown_(shown) {}

  /// Nodes of the graph, or of a call of a function.
  struct Level {
    std::optional<std::string_view> function;
    std::string prefix;                               ///< of the values
    std::map<std::string_view, const Node*> by_name;  ///< its nodes
    std::map<std::string_view, std::string> values;   ///< by node or argument; of calls that of a result
    std::map<std::string_view, std::vector<std::string>> results;  ///< of calls, by node
    std::vector<std::string_view> controls;
    int depth = 0;

    Level(const std::vector<Node>& nodes, std::string prefix_of_values)
        : prefix(std::move(prefix_of_values)) {
      for (const Node& node : nodes) by_name.emplace(node.name, &node);
    }
  };

  /// The value that a reference is, when all that it needs is drawn.
  std::string draw(Level& level, std::string_view reference) {
    walk(level, reference, false);
    return value_of(level, reference);
  }

  /// Behind all results, what only has to come before what they need.
  void draw_controls(Level& level) {
    for (size_t i = 0; i < level.controls.size(); ++i) walk(level, level.controls[i], true);
  }

private:
  void walk(Level& level, std::string_view reference, bool is_control) {
    struct Open {
      const Node* node;
      size_t next = 0;
    };
    std::vector<Open> stack;
    const auto open = [&](std::string_view text) {
      const auto found = level.by_name.find(node_of(text));
      if (found == level.by_name.end()) return;
      if (level.values.emplace(found->first, level.prefix + std::string(found->first)).second)
        stack.push_back({found->second});
    };
    open(reference);
    while (!stack.empty() && !shown_.is_full()) {
      const Node& node = *stack.back().node;
      if (stack.back().next < node.inputs.size()) {
        const std::string_view input = node.inputs[stack.back().next++];
        if (input.starts_with('^')) {
          level.controls.push_back(input);
        } else if (!is_control) {
          open(input);
        }
      } else {
        stack.pop_back();
        add(level, node, is_control);
      }
    }
  }

  static std::string value_of(const Level& level, std::string_view reference) {
    const std::string_view name = node_of(reference);
    const auto found = level.values.find(name);
    if (found == level.values.end()) return {};
    const auto call = level.results.find(name);
    if (call == level.results.end() || call->second.empty()) return found->second;
    // "node:1" in the graph, "node:output:1" in a function.
    const size_t colon = reference.rfind(':');
    size_t number = 0;
    if (colon != std::string_view::npos)
      std::from_chars(reference.data() + colon + 1, reference.data() + reference.size(), number);
    return call->second[number < call->second.size() ? number : 0];
  }

  void add(Level& level, const Node& node, bool is_control) {
    if (!is_control && level.depth < kMostShownDepth)
      if (const Function* called = only_called(node)) return add_call(level, node, *called);
    FileNode made{.op = std::string(node.op.substr(0, 200)),
                  .label = std::string(node.name.substr(0, 200)),
                  .path = node_path(level.function, node),
                  .within = {},
                  .inputs = inputs_of(level, node),
                  .outputs = {level.values.at(node.name)},
                  .is_aside = is_control || is_constant(node.op)};
    for (const std::string_view function : all_called(node)) made.within.push_back(paths_of(function));
    shown_.add_node(std::move(made));
  }

  static std::vector<std::string> inputs_of(const Level& level, const Node& node) {
    std::vector<std::string> inputs;
    for (const std::string_view input : node.inputs)
      if (!input.starts_with('^')) inputs.push_back(value_of(level, input));
    return inputs;
  }

  const Function* only_called(const Node& node) const {
    if (node.op != "PartitionedCall" && node.op != "StatefulPartitionedCall") return nullptr;
    std::vector<std::string_view> called;
    add_called(node, called);
    const auto found = called.size() == 1 ? graph_.functions.find(called.front()) : graph_.functions.end();
    return found == graph_.functions.end() ? nullptr : &found->second;
  }

  void add_call(Level& level, const Node& node, const Function& function) {
    // A large function may be called by many nodes.
    if (!shown_.takes(8 * function.nodes.size())) return;
    Level inner(function.nodes, level.values.at(node.name) + "/");
    inner.function = function.name;
    inner.depth = level.depth + 1;
    const std::vector<std::string> inputs = inputs_of(level, node);
    for (size_t i = 0; i < inputs.size() && i < function.inputs.size(); ++i)
      inner.values.emplace(function.inputs[i].name, inputs[i]);
    std::vector<std::string>& results = level.results[node.name];
    for (const Argument& output : function.outputs) {
      const auto result = function.results.find(output.name);
      results.push_back(result == function.results.end() ? std::string() : draw(inner, result->second));
    }
    draw_controls(inner);
  }

  /// The functions that a node calls, and those that these call.
  std::set<std::string_view> all_called(const Node& node) {
    std::set<std::string_view> all;
    std::vector<std::string_view> open;
    add_called(node, open);
    while (!open.empty()) {
      const std::string_view name = open.back();
      open.pop_back();
      const auto found = graph_.functions.find(name);
      // A file may have many nodes, each of which leads to many functions.
      if (found == graph_.functions.end() || !all.insert(name).second || !shown_.takes(name.size())) continue;
      const std::vector<std::string_view>& called = called_in(found->second);
      open.insert(open.end(), called.begin(), called.end());
    }
    return all;
  }

  const std::vector<std::string_view>& called_in(const Function& function) {
    const auto known = called_.find(&function);
    if (known != called_.end()) return known->second;
    std::vector<std::string_view> called;
    for (const Node& node : function.nodes) add_called(node, called);
    const std::set<std::string_view> each(called.begin(), called.end());
    return called_.emplace(&function, std::vector<std::string_view>(each.begin(), each.end())).first->second;
  }

  const Graph& graph_;
  FileGraph& shown_;
  std::map<const Function*, std::vector<std::string_view>> called_;
};

}  // namespace

std::string node_path(std::optional<std::string_view> function, const Node& node) {
  return (function ? paths_of(*function) : std::string()) + std::string(node.name);
}

void add_called(const Node& node, std::vector<std::string_view>& called) {
  for (const auto& [name, attribute] : node.attributes) {
    if (const auto* function = std::get_if<std::shared_ptr<const FunctionRef>>(&attribute.value))
      called.push_back((*function)->name);
    if (const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&attribute.value))
      for (const FunctionRef& function : (*list)->functions) called.push_back(function.name);
  }
}

FileGraph file_graph(const SavedModel& model, const EntryPoint& entry) {
  FileGraph shown(entry.key.empty() ? "graph" : entry.key);
  Drawing drawing(model.graph, shown);
  Drawing::Level level(model.graph.nodes, "");
  for (const Port& port : entry.inputs) {
    std::string name = port.name;
    while (level.by_name.contains(name)) name += "_";
    // What is given is not looked into.
    const auto found = level.by_name.find(node_of(port.tensor));
    if (found == level.by_name.end()) continue;
    level.values.emplace(found->first, name);
    shown.add_input(name, type_of(port));
  }
  for (const Port& port : entry.outputs) {
    const std::string value = drawing.draw(level, port.tensor);
    if (!value.empty()) shown.add_output(value, type_of(port));
  }
  drawing.draw_controls(level);
  return shown;
}

}  // namespace tensormill::frontend::tensorflow
