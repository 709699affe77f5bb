#include "compiler/frontend/tensorflow/import.h"

#include <algorithm>
#include <set>

#include "compiler/build/format_import.h"
#include "compiler/frontend/tensorflow/file_graph.h"
#include "compiler/frontend/tensorflow/refusals.h"
#include "compiler/frontend/tensorflow/scope.h"

namespace tensormill::frontend::tensorflow {

namespace {

constexpr int kMostDepth = 64;

/// What the file says of a node's operands.
std::string types_of(const Node& node) {
  std::string text;
  for (const auto& [name, attribute] : node.attributes)
    if (const auto* type = std::get_if<DataType>(&attribute.value))
      text +=
          (text.empty() ? "" : ", ") + std::string(name.substr(0, 50)) + " " + std::string(type_name(*type));
  return text;
}

std::string shapes_of(const ir::Graph& graph, const std::vector<Item>& inputs) {
  std::string text;
  for (const Item& item : inputs) {
    const auto* value = std::get_if<V>(&item.value);
    if (value != nullptr) text += (text.empty() ? "" : ", ") + ir::to_string(graph.value(*value).type);
    if (text.size() > 200) return text + " ...";
  }
  return text;
}

std::string name_of(std::string_view op) { return std::string(op.substr(0, 200)); }

build::NodePlace place_of(const Node& node, std::optional<std::string_view> function,
                          const std::string& found) {
  const std::string op = name_of(node.op);
  return {"op " + op, name_of(node.name), found, node_path(function, node),
          "node \"" + std::string(node.name.substr(0, 500)) + "\", " + op};
}

/// What changes a variable or a table: a package keeps nothing between its runs.
bool is_assignment(std::string_view op) {
  return op.starts_with("LookupTableInsert") || op.starts_with("LookupTableRemove") ||
         op.starts_with("LookupTableImport") || op.starts_with("Assign") || op.starts_with("ResourceApply") ||
         op.starts_with("ResourceScatter") ||
         (op.starts_with("Scatter") && op != "ScatterNd" && op != "ScatterNdNonAliasingAdd") ||
         op.starts_with("Apply");
}

/// What is not there, among the nodes that the results need and those of the functions that they call.
class MissingOperators {
public:
  MissingOperators(const Graph& graph, build::Missing& missing) : graph_(graph), missing_(missing) {}

  void note(const std::vector<Node>& nodes, const std::vector<std::string_view>& results,
            const std::set<std::string_view>& given) {
    std::vector<std::string_view> called;
    walk(nodes, std::nullopt, results, given, called);
    while (!called.empty()) {
      const std::string_view name = called.back();
      called.pop_back();
      const auto found = graph_.functions.find(name);
      if (found == graph_.functions.end() || !seen_.insert(name).second) continue;
      std::vector<std::string_view> ends;
      for (const auto& [output, tensor] : found->second.results) ends.push_back(tensor);
      std::set<std::string_view> arguments;
      for (const Argument& argument : found->second.inputs) arguments.insert(argument.name);
      walk(found->second.nodes, name, ends, arguments, called);
    }
    note_changes();
  }

private:
  /// What functions change whose results nothing reads: all that they do is done.
  void note_changes() {
    while (!before_.empty()) {
      const std::string_view name = before_.back();
      before_.pop_back();
      const auto found = graph_.functions.find(name);
      if (found == graph_.functions.end() || !seen_.insert(name).second) continue;
      for (const Node& node : found->second.nodes) {
        look_at(node, name, true);
        add_called(node, before_);
      }
    }
  }

  void walk(const std::vector<Node>& nodes, std::optional<std::string_view> function,
            std::vector<std::string_view> wanted, const std::set<std::string_view>& given,
            std::vector<std::string_view>& called) {
    std::map<std::string_view, const Node*> by_name;
    for (const Node& node : nodes) by_name.emplace(node.name, &node);
    std::set<std::string_view> seen;
    std::vector<std::string_view> before;
    const auto next = [&](std::vector<std::string_view>& open) -> const Node* {
      std::string_view text = open.back();
      open.pop_back();
      if (text.starts_with('^')) text.remove_prefix(1);
      const std::string_view name = text.substr(0, text.find(':'));
      const auto found = by_name.find(name);
      const bool is_new = found != by_name.end() && !given.contains(name) && seen.insert(name).second;
      return is_new ? found->second : nullptr;
    };
    while (!wanted.empty()) {
      const Node* node = next(wanted);
      if (node == nullptr) continue;
      look_at(*node, function, false);
      add_called(*node, called);
      for (const std::string_view input : node->inputs)
        (input.starts_with('^') ? before : wanted).push_back(input);
    }
    // What only has to come before is not converted, but it must not change what is read. It is looked at
    // last: what is read as well counts as that.
    while (!before.empty()) {
      const Node* node = next(before);
      if (node == nullptr) continue;
      look_at(*node, function, true);
      add_called(*node, before_);
      for (const std::string_view input : node->inputs)
        if (input.starts_with('^')) before.push_back(input);
    }
  }

  void look_at(const Node& node, std::optional<std::string_view> function, bool is_control) {
    if (is_assignment(node.op)) {
      missing_.add(place_of(node, function, types_of(node)),
                   "it changes a variable or a table, and a package keeps nothing between runs");
    } else if (!is_control && find_row(node.op) == nullptr) {
      missing_.add(place_of(node, function, types_of(node)), reason_of(node.op));
    }
  }

  const Graph& graph_;
  build::Missing& missing_;
  std::set<std::string_view> seen_;
  std::vector<std::string_view> before_;  ///< functions that only have to run before
};

bool is_asked(const ImportRequest& request, const Port& port) {
  const std::vector<std::string>& outputs = request.outputs;
  return outputs.empty() || std::find(outputs.begin(), outputs.end(), port.name) != outputs.end();
}

build::Missing missing_of(const SavedModel& model, const ImportRequest& request) {
  EntryPoint asked = request.entry;
  std::erase_if(asked.outputs, [&](const Port& port) { return !is_asked(request, port); });
  return missing_operators(model, asked);
}

class GraphImport final : public build::FormatImport {
public:
  GraphImport(const LoadedModel& loaded, const ImportRequest& request, const ir::OpRegistry& ops)
      : FormatImport(ops, request,
                     {request.entry.key.empty() ? "graph" : request.entry.key,
                      build::names_of(request.entry.inputs), build::names_of(request.entry.outputs)},
                     missing_of(loaded.model(), request),
                     {"node", size_t{1} << 20, ", those of loops as often as they go round", {"node "}}),
        loaded_(loaded),
        request_(request),
        state_{loaded, graph_, reserved_},
        scopes_(
            graph_,
            [this](Scope& scope, size_t node, const std::vector<Item>& inputs) {
              return convert(scope, node, inputs);
            },
            [this](const Body& body, const Node& node, const UnsupportedForm& form) {
              missing_.add(place_in(body, node, {}), form.attribute + ": " + form.reason);
            },
            [this](Scope& scope, size_t node, const LoopForm& form, const std::vector<Item>& initial) {
              return loop_over(scope, node, form, initial);
            }) {
    state_.call = [this](const FunctionRef& function, const std::vector<Item>& inputs) {
      return call(function, inputs);
    };
  }

private:
  bool convert_all() override {
    const Body body(loaded_.model().graph.nodes, std::nullopt);
    Scope scope{body};
    add_inputs(scope);
    state_.fill_tables = [&] { fill_tables(scope); };
    for (const Port& port : request_.entry.outputs)
      outputs_.push_back(is_asked(request_, port) ? value_of(scope, port) : ir::kAbsent);
    return missing_.empty();
  }

  V output(size_t index) override { return outputs_[index]; }

  void add_inputs(Scope& scope) {
    for (size_t i = 0; i < request_.entry.inputs.size(); ++i) {
      const Port& port = request_.entry.inputs[i];
      const std::optional<DType> dtype = dtype_of(port.dtype);
      if (!dtype)
        throw Error(ErrorCode::kNotSupported,
                    "input \"" + port.name + "\" has elements of type " + std::string(type_name(port.dtype)));
      const Reference reference = parse_reference(scope.body, port.tensor, nullptr);
      std::vector<Item>& results = scope.results[scope.body.find(reference.name)];
      if (results.size() <= reference.output) results.resize(reference.output + 1);
      results[reference.output] = {add_input(i, *dtype), {}};
    }
  }

  /// kAbsent where it could not be converted.
  V value_of(Scope& scope, const Port& port) {
    const std::optional<Item> item = scopes_.evaluate(scope, port.tensor);
    if (!item) return ir::kAbsent;
    const V* value = std::get_if<V>(&item->value);
    if (value == nullptr) throw Error(ErrorCode::kNotSupported, "output \"" + port.name + "\" is no tensor");
    if (!state_.padded.contains(*value)) return *value;
    const Node made{.name = port.name, .op = "Identity", .inputs = {}, .attributes = {}};
    NodeContext context(state_, made, *find_row("Identity"), {}, nullptr);
    return gathered_rows(context, *value);
  }

  build::NodePlace place_in(const Body& body, const Node& node, const std::vector<Item>& inputs) const {
    return place_of(node, body.function, "operands " + shapes_of(graph_, inputs));
  }

  std::optional<std::vector<Item>> convert(Scope& scope, size_t index, const std::vector<Item>& inputs) {
    const Node& node = (*scope.body.nodes)[index];
    const std::string label = std::string(node.name.substr(0, 500));
    const OpRow* row = find_row(node.op);
    // Of functions that a call names by an attribute, or that are not looked at before.
    if (row == nullptr) {
      missing_.add(place_of(node, scope.body.function, types_of(node)), reason_of(node.op));
      return std::nullopt;
    }
    std::vector<Item> outputs;
    const bool is_done = try_convert(
        label, [&] { return place_in(scope.body, node, inputs); },
        [&] {
          NodeContext context(state_, node, *row, inputs, scope.placeholders);
          convert_node(context, row->convert);
          context.check_read();
          outputs = context.take_outputs();
          if (node.op != "Merge" && node.op != "RefMerge") pass_conditions(inputs, outputs);
        });
    return is_done ? std::optional(std::move(outputs)) : std::nullopt;
  }

  std::vector<Item> loop_over(const Scope& scope, size_t index, const LoopForm& form,
                              const std::vector<Item>& initial) {
    const Node& node = (*scope.body.nodes)[index];
    const std::string label = std::string(node.name.substr(0, 500));
    const ir::SymbolTable::Origin origin(graph_.symbols().get(), label);
    try {
      NodeContext context(state_, node, *find_row(node.op), initial, scope.placeholders);
      return ir::as_invalid_model([&] { return looped_over_rows(context, form, initial); });
    } catch (Error& error) {
      if (!names_node(error)) error.add_context("node \"" + label + "\", a loop");
      throw;
    }
  }

  /// What is computed from a side of a branch belongs to that side.
  static void pass_conditions(const std::vector<Item>& inputs, std::vector<Item>& outputs) {
    for (const Item& input : inputs)
      for (Item& output : outputs) output.under.insert(input.under.begin(), input.under.end());
  }

  const Function* function_of(const Node& node) const {
    if (node.op != "PartitionedCall" && node.op != "StatefulPartitionedCall") return nullptr;
    const auto attribute = node.attributes.find("f");
    if (attribute == node.attributes.end()) return nullptr;
    const auto* called = std::get_if<std::shared_ptr<const FunctionRef>>(&attribute->second.value);
    if (called == nullptr) return nullptr;
    const auto found = loaded_.model().graph.functions.find((*called)->name);
    return found == loaded_.model().graph.functions.end() ? nullptr : &found->second;
  }

  /// What runs when a model is loaded: of a SavedModel what its signature for that waits for and what reads
  /// its checkpoint, and all nodes of a graph that fill tables.
  void fill_tables(Scope& scope) {
    std::set<std::string_view> seen;
    std::vector<std::string_view> open;
    const auto signature = loaded_.model().signatures.find("__saved_model_init_op");
    if (signature != loaded_.model().signatures.end())
      for (const auto& [name, tensor] : signature->second.outputs) open.push_back(tensor.name);
    open.push_back(loaded_.model().restore_node);
    for (const Node& node : *scope.body.nodes)
      if (fills_table(node.op)) open.push_back(node.name);
    while (!open.empty()) {
      std::string_view name = open.back();
      open.pop_back();
      if (name.starts_with('^')) name.remove_prefix(1);
      name = name.substr(0, name.find(':'));
      if (!scope.body.by_name.contains(name) || !seen.insert(name).second) continue;
      const size_t index = scope.body.find(name);
      const Node& node = (*scope.body.nodes)[index];
      run_filler(scope, index);
      if (node.op == "NoOp") open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
  }

  /// The file whose name a tensor is: a constant of the model, or the variable that it is assigned to first.
  std::optional<std::string_view> asset_of(const Scope& scope, std::string_view input) const {
    if (scope.body.is_function()) return std::nullopt;
    const std::map<std::string, SavedAsset>& assets = loaded_.model().assets;
    const auto find = [&](std::string_view tensor) -> std::optional<std::string_view> {
      const auto found = assets.find(std::string(tensor.substr(0, tensor.find(':'))));
      if (found == assets.end()) return std::nullopt;
      if (!found->second.content)
        throw Error(ErrorCode::kInvalidModel, "there is no file \"assets/" +
                                                  found->second.name.substr(0, 200) +
                                                  "\", which a table is filled from");
      return found->second.content;
    };
    const auto read = scope.body.by_name.find(input.substr(0, input.find(':')));
    if (const auto own = find(input); own || read == scope.body.by_name.end()) return own;
    for (const std::string_view before : (*scope.body.nodes)[read->second].inputs) {
      const auto assigned = scope.body.by_name.find(before.substr(before.starts_with('^') ? 1 : 0));
      if (!before.starts_with('^') || assigned == scope.body.by_name.end()) continue;
      const Node& assign = (*scope.body.nodes)[assigned->second];
      if (assign.op == "AssignVariableOp" && assign.inputs.size() > 1) return find(assign.inputs[1]);
    }
    return std::nullopt;
  }

  /// Fills a table, or calls a function that does.
  void run_filler(Scope& scope, size_t index) {
    const Node& node = (*scope.body.nodes)[index];
    const Function* function = function_of(node);
    if (function == nullptr && !fills_table(node.op)) return;
    if (++converted_ > limit_.most)
      throw Error(ErrorCode::kTooLarge, "more than " + std::to_string(limit_.most) + " nodes fill tables");
    std::vector<Item> inputs;
    for (const std::string_view input : node.inputs) {
      if (input.starts_with('^')) continue;
      const std::optional<std::string_view> asset = asset_of(scope, input);
      const bool is_checkpoint =
          !scope.body.is_function() && input.substr(0, input.find(':')) == loaded_.model().checkpoint_node;
      const std::optional<Item> item = asset           ? Item{AssetFile{*asset}, {}}
                                       : is_checkpoint ? Item{CheckpointFiles(), {}}
                                                       : scopes_.evaluate(scope, input);
      if (!item) return;
      inputs.push_back(*item);
    }
    if (function == nullptr) return static_cast<void>(convert(scope, index, inputs));
    if (depth_ == kMostDepth || inputs.size() != function->inputs.size()) return;
    Scope inner{body_of(*function)};
    for (size_t i = 0; i < inputs.size(); ++i) inner.arguments[function->inputs[i].name] = inputs[i];
    ++depth_;
    for (size_t i = 0; i < function->nodes.size(); ++i) run_filler(inner, i);
    --depth_;
  }

  const Body& body_of(const Function& function) {
    const auto known = bodies_.find(&function);
    if (known != bodies_.end()) return known->second;
    return bodies_.emplace(&function, Body(function.nodes, function.name)).first->second;
  }

  /// Resources behind the caller's own arguments are found by what the function is bound to: handles of the
  /// same name may be several.
  void bind_resources(const FunctionRef& called, std::vector<Item>& inputs) const {
    const auto bound = loaded_.model().bound_inputs.find(std::string(called.name));
    if (bound == loaded_.model().bound_inputs.end() || bound->second.size() > inputs.size()) return;
    const size_t first = inputs.size() - bound->second.size();
    for (size_t i = 0; i < bound->second.size(); ++i) {
      const SavedObject& object = loaded_.model().objects.at(static_cast<size_t>(bound->second[i]));
      Item& item = inputs[first + i];
      if (std::holds_alternative<Resource>(item.value) && !object.checkpoint_key.empty())
        item.value = Resource{object.name, object.checkpoint_key};
    }
  }

  std::optional<std::vector<Item>> call(const FunctionRef& called, std::vector<Item> inputs) {
    const auto found = loaded_.model().graph.functions.find(called.name);
    if (found == loaded_.model().graph.functions.end())
      throw Error(ErrorCode::kInvalidModel, "there is no function \"" + name_of(called.name) + "\"");
    const Function& function = found->second;
    if (inputs.size() != function.inputs.size())
      throw Error(ErrorCode::kInvalidModel, "function \"" + name_of(called.name) + "\" has " +
                                                std::to_string(function.inputs.size()) + " arguments, not " +
                                                std::to_string(inputs.size()));
    if (depth_ == kMostDepth)
      throw Error(ErrorCode::kInvalidModel,
                  "functions call each other more than " + std::to_string(kMostDepth) + " deep");
    bind_resources(called, inputs);
    Scope scope{body_of(function), {}, &called.attributes};
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Argument& argument = function.inputs[i];
      if (!argument.type_list_attr.empty() || !argument.number_attr.empty())
        throw Error(ErrorCode::kNotSupported,
                    "function \"" + name_of(called.name) + "\" takes a list of arguments");
      scope.arguments[argument.name] = std::move(inputs[i]);
    }
    ++depth_;
    std::vector<Item> outputs;
    bool is_whole = true;
    for (const Argument& result : function.outputs) {
      const auto tensor = function.results.find(result.name);
      if (tensor == function.results.end())
        throw Error(ErrorCode::kInvalidModel, "function \"" + name_of(called.name) +
                                                  "\" says nothing of its result \"" + name_of(result.name) +
                                                  "\"");
      std::optional<Item> item = scopes_.evaluate(scope, tensor->second);
      is_whole = is_whole && item.has_value();
      if (item) outputs.push_back(*std::move(item));
    }
    --depth_;
    return is_whole ? std::optional(std::move(outputs)) : std::nullopt;
  }

  const LoadedModel& loaded_;
  const ImportRequest& request_;
  ImportState state_;
  std::map<const Function*, Body> bodies_;
  ScopeImport scopes_;
  std::vector<V> outputs_;
  int depth_ = 0;
};

}  // namespace

build::Missing missing_operators(const SavedModel& model, const EntryPoint& entry) {
  std::vector<std::string_view> results;
  std::set<std::string_view> given;
  for (const Port& port : entry.outputs) results.push_back(port.tensor);
  for (const Port& port : entry.inputs)
    given.insert(std::string_view(port.tensor).substr(0, port.tensor.find(':')));
  build::Missing missing;
  MissingOperators(model.graph, missing).note(model.graph.nodes, results, given);
  return missing;
}

ir::Graph import_graph(const LoadedModel& model, const ImportRequest& request, const ir::OpRegistry& ops) {
  return GraphImport(model, request, ops).run();
}

}  // namespace tensormill::frontend::tensorflow
