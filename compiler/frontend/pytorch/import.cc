#include "compiler/frontend/pytorch/import.h"

#include <algorithm>
#include <array>
#include <set>

#include "compiler/build/format_import.h"
#include "compiler/frontend/pytorch/file_graph.h"
#include "compiler/frontend/pytorch/node_context.h"

namespace tensormill::frontend::pytorch {

namespace {

std::string operands_of(const Graph& graph, const Node& node) {
  std::string text;
  for (const NamedArgument& input : node.inputs) {
    for (const std::string& name : input.argument.names) {
      const auto found = graph.tensors.find(name);
      if (found == graph.tensors.end()) continue;
      std::string sizes;
      for (const SymDim& size : found->second.sizes) sizes += (sizes.empty() ? "" : ",") + to_string(size);
      text += (text.empty() ? "" : ", ") + std::string(scalar_name(found->second.dtype)) + "[" + sizes + "]";
      if (text.size() > 200) return text + " ...";
    }
  }
  return text;
}

/// `around`: what the paths of the graph's nodes begin with.
build::NodePlace place_of(const Graph& graph, size_t index, const std::string& around) {
  const Node& node = graph.nodes[index];
  const std::string op(short_target(node.target).substr(0, 200)), label = node_label(node, index);
  return {"op " + op, label, "operands " + operands_of(graph, node), around + label,
          build::numbered_node("node", index, op, label)};
}

/// Of the graph and of those within its nodes.
void note_missing(const Graph& graph, const std::string& around, build::Missing& missing) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (find_row(node.target) == nullptr) missing.add(place_of(graph, i, around), why_missing(node.target));
    for (const NamedArgument& input : node.inputs)
      if (input.argument.graph)
        note_missing(*input.argument.graph, paths_within(around, node, i, input), missing);
  }
}

/// What the paths of the graphs within a graph's nodes begin with.
void add_paths(const Graph& graph, const std::string& around, std::map<const Graph*, std::string>& paths) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const NamedArgument& input : graph.nodes[i].inputs) {
      if (!input.argument.graph) continue;
      const std::string within = paths_within(around, graph.nodes[i], i, input);
      add_paths(*input.argument.graph, within, paths);
      paths.emplace(input.argument.graph.get(), within);
    }
  }
}

/// Whether a node compares numbers, or joins what was compared.
bool is_condition(std::string_view target) {
  constexpr std::array<std::string_view, 9> kConditions = {
      "_operator.eq", "_operator.ne",   "_operator.lt",  "_operator.le", "_operator.gt",
      "_operator.ge", "_operator.and_", "_operator.or_", "torch.sym_not"};
  return std::find(kConditions.begin(), kConditions.end(), target) != kConditions.end();
}

/// Names that something reads beside assertions, and beside conditions for these alone.
std::set<std::string, std::less<>> used_in(const Graph& graph) {
  std::set<std::string, std::less<>> used;
  for (const Argument& output : graph.outputs) used.insert(output.names.begin(), output.names.end());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const std::string_view target = short_target(node->target);
    const bool is_read = std::any_of(node->outputs.begin(), node->outputs.end(), [&](const Argument& output) {
      const std::set<std::string, std::less<>> names = number_names(output.value);
      return std::any_of(names.begin(), names.end(),
                         [&](const std::string& name) { return used.contains(name); });
    });
    const bool is_for_assertions =
        target.starts_with("aten._assert_scalar") || (is_condition(target) && !is_read);
    for (const NamedArgument& input : node->inputs) {
      // Where a decomposition fails, its results are no numbers.
      if (target.starts_with("aten._linalg_check_errors")) continue;
      used.insert(input.argument.names.begin(), input.argument.names.end());
      if (!is_for_assertions) used.merge(number_names(input.argument.value));
    }
  }
  return used;
}

/// "" is none.
void add_tensors(const Argument& argument, std::vector<std::string>& names) {
  for (const std::string& name : argument.names)
    if (!name.empty()) names.push_back(name);
}

class GraphImport final : public build::FormatImport {
public:
  GraphImport(const LoadedProgram& loaded, const ImportRequest& request, const ir::OpRegistry& ops)
      : FormatImport(
            ops, request,
            {"program", build::names_of(request.ports.inputs), build::names_of(request.ports.outputs)},
            missing_operators(loaded.program()), {"node", size_t{1} << 20, "", {"node "}}),
        loaded_(loaded),
        request_(request),
        state_{loaded, graph_, reserved_, {}},
        main_(state_of(loaded.program().graph)) {
    state_.call = [this](const Graph& graph, const std::vector<View>& inputs) { return call(graph, inputs); };
    add_paths(loaded.program().graph, "", paths_);
  }

private:
  bool convert_all() override {
    add_weights();
    add_inputs();
    check_ranges();
    return convert_nodes(main_);
  }

  GraphState state_of(const Graph& graph) { return {state_, graph, {}, {}, used_in(graph)}; }

  void add_weights() {
    for (const InputSpec& input : loaded_.program().inputs) {
      const StoredTensor* stored = loaded_.program().stored(input);
      if (input.kind == "user_input" || stored == nullptr) continue;
      auto storage = std::make_shared<Storage>();
      storage->stored = stored;
      storage->name = input.target;
      storage->is_weight = true;
      View view{std::move(storage)};
      view.is_complex = part_type(stored->dtype).has_value();
      main_.tensors.insert_or_assign(input.name, std::move(view));
    }
  }

  void add_inputs() {
    for (size_t i = 0; i < request_.ports.inputs.size(); ++i) {
      const Port& port = request_.ports.inputs[i];
      const TensorMeta& meta = main_.graph.tensors.at(port.value);
      const std::optional<DType> dtype = dtype_of(meta.dtype);
      if (!dtype)
        throw Error(ErrorCode::kNotSupported,
                    "input \"" + port.name + "\" has elements of type " +
                        std::string(scalar_name(meta.dtype)) +
                        (part_type(meta.dtype) ? ": give it as pairs, of which the "
                                                 "module makes torch.view_as_complex()"
                                               : ""));
      auto storage = std::make_shared<Storage>();
      storage->name = port.name;
      storage->value = add_input(i, *dtype);
      const V value = storage->value;
      main_.tensors.insert_or_assign(port.value, View{std::move(storage), {}, value, 0});
      note_extents(port, meta, request_.input_shapes[i]);
    }
  }

  /// A symbol is one number in all inputs.
  void note_extents(const Port& port, const TensorMeta& meta, const ir::SymShape& shape) {
    for (size_t i = 0; i < shape.size(); ++i) {
      const std::optional<SymExpr>& expr = meta.sizes[i].expr;
      if (!expr || expr->kind != SymExpr::Kind::kSymbol) continue;
      const auto [known, is_new] = symbols_.emplace(expr->name, shape[i]);
      if (!is_new && !ir::demand(ir::Relation::kEqual, known->second, shape[i]))
        throw Error(ErrorCode::kInvalidModel, "input \"" + port.name + "\" has extent " +
                                                  to_string(shape[i]) + " in dim " + std::to_string(i) +
                                                  ", an input before it " + to_string(known->second) +
                                                  " for the same dim " + expr->name);
    }
  }

  /// The export took extents from 2 on where it did not know better: of 0 and 1 it makes other programs. Here
  /// they are extents like others.
  void check_ranges() const {
    for (const auto& [name, extent] : symbols_) {
      const auto found = loaded_.program().ranges.find(name);
      if (found == loaded_.program().ranges.end()) continue;
      const SymbolRange& range = found->second;
      const bool is_above =
          !range.min || *range.min <= 2 || ir::demand(ir::Relation::kLessEqual, *range.min, extent);
      const bool is_bounded = range.max && *range.max < build::kMaxListed * 256;
      const bool is_below = !is_bounded || ir::demand(ir::Relation::kLessEqual, extent, *range.max);
      if (is_above && is_below) continue;
      throw Error(ErrorCode::kInvalidModel, "dim " + name + " is " + to_string(extent) +
                                                ", the module was exported for " +
                                                (range.min ? std::to_string(*range.min) : "any") + " to " +
                                                (range.max ? std::to_string(*range.max) : "any"));
    }
  }

  /// Whether all nodes could be converted.
  bool convert_nodes(GraphState& state) {
    build::LostValues<std::string> lost;
    for (size_t i = 0; i < state.graph.nodes.size(); ++i) {
      const Node& node = state.graph.nodes[i];
      std::vector<std::string> read, made;
      for (const NamedArgument& input : node.inputs) add_tensors(input.argument, read);
      for (const Argument& output : node.outputs) add_tensors(output, made);
      lost.convert(read, made, [&] { return convert(state, i); });
    }
    return lost.is_whole();
  }

  bool convert(GraphState& state, size_t index) {
    const Node& node = state.graph.nodes[index];
    const std::string label = node_label(node, index);
    return try_convert(
        label, [&] { return place_of(state.graph, index, paths_[&state.graph]); },
        [&] {
          const OpRow& row = *find_row(node.target);
          NodeContext context(state, node, row, label);
          convert_node(context);
          context.check_read();
        });
  }

  std::optional<std::vector<V>> call(const Graph& graph, const std::vector<View>& inputs) {
    if (inputs.size() != graph.inputs.size())
      throw Error(ErrorCode::kInvalidModel, "a graph of " + std::to_string(graph.inputs.size()) +
                                                " inputs is called with " + std::to_string(inputs.size()));
    GraphState state = state_of(graph);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (graph.inputs[i].names.size() == 1)
        state.tensors.insert_or_assign(graph.inputs[i].names[0], inputs[i]);
    if (!convert_nodes(state)) return std::nullopt;
    std::vector<V> outputs;
    for (const Argument& output : graph.outputs)
      for (const std::string& name : output.names)
        outputs.push_back(value_of(state, name, "output of a graph"));
    return outputs;
  }

  V value_of(GraphState& state, const std::string& name, const std::string& what) {
    const auto found = state.tensors.find(name);
    if (found == state.tensors.end())
      throw Error(ErrorCode::kInvalidModel, what + ": nothing makes \"" + name + "\"");
    Storage& storage = *found->second.storage;
    if (storage.is_stale) throw Error(ErrorCode::kNotSupported, what + ": " + why_stale(name));
    if (found->second.is_complex)
      throw Error(ErrorCode::kNotSupported,
                  what + " is complex, which no output is: return torch.view_as_real() of it");
    if (storage.value == ir::kAbsent)
      storage.value =
          graph_.add_constant(graph_.unique_name(storage.name), loaded_.constant(*storage.stored));
    build::OpBuilder builder(graph_, name, name, reserved_);
    return read_view(builder, found->second);
  }

  V output(size_t index) override {
    const Port& port = request_.ports.outputs[index];
    return value_of(main_, port.value, "output \"" + port.name + "\"");
  }

  const LoadedProgram& loaded_;
  const ImportRequest& request_;
  ImportState state_;
  GraphState main_;
  std::map<const Graph*, std::string> paths_;
  std::map<std::string, ir::SymInt> symbols_;
};

std::string unique_among(std::set<std::string>& taken, const std::string& base) {
  std::string name = base;
  for (size_t i = 1; !taken.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  return name;
}

}  // namespace

Ports ports_of(const Program& program) {
  Ports ports;
  std::set<std::string> inputs, outputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const InputSpec& input = program.inputs[i];
    if (input.kind == "constant_input" || program.stored(input) != nullptr) continue;
    const bool is_tensor = input.kind == "user_input" && program.graph.tensors.count(input.name) != 0;
    if (!is_tensor)
      throw Error(
          ErrorCode::kNotSupported,
          "input " + std::to_string(i) + (input.name.empty() ? "" : " (\"" + input.name + "\")") + " is " +
              (input.kind == "user_input" ? "no tensor" : "of kind " + input.kind) +
              "; inputs other than tensors are constants when they are given to torch.export as numbers");
    ports.inputs.push_back({unique_among(inputs, input.name), input.name});
  }
  for (const OutputSpec& output : program.outputs) {
    if (output.kind == "user_input_mutation" || output.kind == "token") continue;
    if (output.kind == "buffer_mutation" || output.kind == "parameter_mutation")
      throw Error(
          ErrorCode::kNotSupported,
          "the module writes to \"" + output.target +
              "\", and a package keeps nothing between runs: export it in eval mode, or without the state");
    if (program.graph.tensors.count(output.name) == 0) {
      if (output.name.empty()) continue;  // None, or a number that is the same in each run
      throw Error(ErrorCode::kNotSupported, "output \"" + output.name + "\" is no tensor");
    }
    ports.outputs.push_back({unique_among(outputs, output.name), output.name});
  }
  if (ports.outputs.empty()) throw Error(ErrorCode::kNotSupported, "the module returns no tensor");
  return ports;
}

build::Missing missing_operators(const Program& program) {
  build::Missing missing;
  note_missing(program.graph, "", missing);
  return missing;
}

ir::Graph import_graph(const LoadedProgram& program, const ImportRequest& request,
                       const ir::OpRegistry& ops) {
  return GraphImport(program, request, ops).run();
}

}  // namespace tensormill::frontend::pytorch
