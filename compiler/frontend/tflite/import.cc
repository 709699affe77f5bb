#include "compiler/frontend/tflite/import.h"

#include <algorithm>
#include <set>

#include "compiler/build/format_import.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/tflite/file_graph.h"
#include "compiler/frontend/tflite/node_context.h"
#include "compiler/frontend/tflite/options.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tflite {

namespace {

/// Names as they are, empty ones and those that stand twice with the tensor's index.
std::vector<Port> unique_ports(const Subgraph& graph, Ints tensors, const std::vector<NamedTensor>& aliases) {
  std::vector<Port> ports;
  std::set<std::string> taken;
  for (const int32_t tensor : tensors) {
    if (tensor < 0) continue;
    std::string name(graph.tensors[static_cast<size_t>(tensor)].name);
    for (const NamedTensor& alias : aliases) {
      if (alias.tensor == static_cast<uint32_t>(tensor)) name = alias.name;
    }
    if (name.empty()) name = std::to_string(tensor);
    while (!taken.insert(name).second) name = std::to_string(tensor) + ":" + name;
    ports.push_back({name, tensor});
  }
  return ports;
}

std::string shapes_of(const Subgraph& graph, const Operator& node) {
  std::string text;
  for (const int32_t input : node.inputs) {
    if (input < 0) continue;
    const Tensor& tensor = graph.tensors[static_cast<size_t>(input)];
    text += (text.empty() ? "" : ", ") + std::string(type_name(tensor.type)) +
            to_string(Shape(tensor.signature.begin(), tensor.signature.end()));
    if (text.size() > 200) return text + " ...";
  }
  return text;
}

build::NodePlace operator_place(const Model& model, const Subgraph& graph, size_t index) {
  const Operator& node = graph.operators[index];
  const OperatorCode& code = model.codes[node.code];
  const std::string name = operator_name(code), label = operator_label(model, graph, index);
  return {"op " + name + " version " + std::to_string(code.version), label,
          "operands " + shapes_of(graph, node), operator_path(model, graph, index),
          build::numbered_node("operator", index, name, label)};
}

/// Of the subgraph and of those that it calls.
void note_missing(const Model& model, uint32_t index, const FlexOperators& flex, std::set<uint32_t>& seen,
                  build::Missing& missing) {
  if (!seen.insert(index).second) return;
  const Subgraph& graph = model.subgraphs[index];
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const OperatorCode& code = model.codes[graph.operators[i].code];
    const OpRow* row = find_row(code, flex);
    if (row == nullptr) {
      missing.add(operator_place(model, graph, i), "");
    } else if (code.version > row->max_version) {
      missing.add(operator_place(model, graph, i),
                  "versions up to " + std::to_string(row->max_version) + " are known");
    } else {
      for (const int64_t called : named_subgraphs(graph.operators[i].options))
        note_missing(model, static_cast<uint32_t>(called), flex, seen, missing);
    }
  }
}

constexpr size_t kMostDepth = 32;

class GraphImport final : public build::FormatImport {
public:
  GraphImport(const LoadedModel& loaded, const ImportRequest& request, const ir::OpRegistry& ops)
      : FormatImport(
            ops, request,
            {std::string(loaded.model().subgraphs[request.entry.subgraph].name),
             build::names_of(request.entry.inputs), build::names_of(request.entry.outputs)},
            missing_operators(loaded.model(), request.entry, request.flex),
            {"operator", size_t{1} << 17, ", those of loops as often as they go round", {"operator "}}),
        loaded_(loaded),
        request_(request),
        state_{loaded, graph_, reserved_, request.is_exact, request.flex},
        main_(state_of(request.entry.subgraph)) {
    state_.call = [this](uint32_t subgraph, const std::vector<V>& inputs) { return call(subgraph, inputs); };
  }

private:
  bool convert_all() override {
    add_inputs();
    return convert_operators(main_);
  }

  GraphState state_of(uint32_t index) {
    const Subgraph& subgraph = loaded_.model().subgraphs[index];
    return {state_, subgraph, std::vector<V>(subgraph.tensors.size(), ir::kAbsent)};
  }

  void add_inputs() {
    for (size_t i = 0; i < request_.entry.inputs.size(); ++i) {
      const Port& port = request_.entry.inputs[i];
      const Tensor& tensor = main_.subgraph.tensors[static_cast<size_t>(port.tensor)];
      const std::optional<DType> dtype = dtype_of(tensor.type);
      const bool is_packed = dtype != kString && type_bits(tensor.type) < 8;
      if (!dtype || is_packed)
        throw Error(ErrorCode::kNotSupported, "input \"" + port.name + "\" has elements of type " +
                                                  std::string(type_name(tensor.type)));
      main_.values[static_cast<size_t>(port.tensor)] = add_input(i, *dtype);
    }
  }

  /// Whether all operators could be converted.
  bool convert_operators(GraphState& state) {
    build::LostValues<int32_t> lost;
    for (size_t i = 0; i < state.subgraph.operators.size(); ++i) {
      const Operator& node = state.subgraph.operators[i];
      std::vector<int32_t> read(node.inputs.begin(), node.inputs.end());
      std::erase_if(read, [](int32_t input) { return input < 0; });
      lost.convert(read, node.outputs, [&] { return convert(state, i); });
    }
    return lost.is_whole();
  }

  /// Of quantized numbers the exact form where that was asked for and there is one.
  Converter converter_of(const GraphState& state, const Operator& node) const {
    const OperatorCode& code = loaded_.model().codes[node.code];
    const auto quantized = [&](int32_t tensor) {
      return tensor >= 0 && is_quantized(state.subgraph.tensors[static_cast<size_t>(tensor)]);
    };
    const bool computes = std::any_of(node.inputs.begin(), node.inputs.end(), quantized) ||
                          std::any_of(node.outputs.begin(), node.outputs.end(), quantized);
    const Converter exact = state_.is_exact && computes ? find_exact(code) : nullptr;
    return exact != nullptr ? exact : find_row(code, request_.flex)->convert;
  }

  bool convert(GraphState& state, size_t index) {
    const Operator& node = state.subgraph.operators[index];
    const std::string label = operator_label(loaded_.model(), state.subgraph, index);
    return try_convert(
        label, [&] { return operator_place(loaded_.model(), state.subgraph, index); },
        [&] {
          NodeContext context(state, node, label);
          convert_node(context, converter_of(state, node));
        });
  }

  std::optional<std::vector<V>> call(uint32_t index, const std::vector<V>& inputs) {
    const Subgraph& subgraph = loaded_.model().subgraphs[index];
    if (depth_ == kMostDepth)
      throw Error(ErrorCode::kInvalidModel,
                  "subgraphs call each other more than " + std::to_string(kMostDepth) + " deep");
    if (inputs.size() != subgraph.inputs.size())
      throw Error(ErrorCode::kInvalidModel, "subgraph " + std::to_string(index) + " has " +
                                                std::to_string(subgraph.inputs.size()) + " inputs, not " +
                                                std::to_string(inputs.size()));
    GraphState state = state_of(index);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (subgraph.inputs[i] >= 0) state.values[static_cast<size_t>(subgraph.inputs[i])] = inputs[i];
    }
    ++depth_;
    const bool is_whole = convert_operators(state);
    --depth_;
    if (!is_whole) return std::nullopt;
    std::vector<V> outputs;
    for (const int32_t output : subgraph.outputs)
      outputs.push_back(value_of(state, output, "output of subgraph " + std::to_string(index)));
    return outputs;
  }

  V value_of(const GraphState& state, int32_t tensor, const std::string& what) {
    const V value = state.values[static_cast<size_t>(tensor)];
    if (value != ir::kAbsent) return value;
    const Tensor& from = state.subgraph.tensors[static_cast<size_t>(tensor)];
    if (!from.is_constant) throw Error(ErrorCode::kInvalidModel, what + " is made by no operator");
    return graph_.add_constant(graph_.unique_name("constant"), loaded_.constant(from));
  }

  V output(size_t index) override {
    const Port& port = request_.entry.outputs[index];
    return value_of(main_, port.tensor, "output \"" + port.name + "\"");
  }

  const LoadedModel& loaded_;
  const ImportRequest& request_;
  ImportState state_;
  GraphState main_;
  size_t depth_ = 0;
};

/// The builtin codes: a row that names none of them does not compile.
struct Code {
  enum : int32_t {
#define TFL_OPERATOR(name, number) name = number,
#include "compiler/frontend/tflite/operators.def"
#undef TFL_OPERATOR
  };
};

constexpr OpRow kRows[] = {
#define TFL_OP(name, version, convert) {Code::name, version, &convert},
#include "compiler/frontend/tflite/import_ops.def"
#undef TFL_OP
};
struct ExactRow {
  int32_t code;
  Converter convert;
};
constexpr ExactRow kExactRows[] = {
#define TFL_EXACT(name, convert) {Code::name, &convert},
#include "compiler/frontend/tflite/exact_ops.def"
#undef TFL_EXACT
};
struct CustomRow {
  std::string_view name;
  OpRow row;
};
constexpr CustomRow kCustomRows[] = {
#define TFL_CUSTOM(name, version, convert) {name, {Code::CUSTOM, version, &convert}},
#include "compiler/frontend/tflite/custom_ops.def"
#undef TFL_CUSTOM
};

constexpr OpRow kFlexRow = {Code::CUSTOM, 1, &convert_flex};

}  // namespace

const OpRow* find_row(const OperatorCode& code, const FlexOperators& flex) {
  if (code.builtin == Code::CUSTOM) {
    const std::string_view name = code.custom;
    if (const CustomRow* custom = build::find_in(kCustomRows, &CustomRow::name, name)) return &custom->row;
    const bool is_flex = name.starts_with(kFlexPrefix) && flex.is_imported != nullptr;
    return is_flex && flex.is_imported(name.substr(kFlexPrefix.size())) ? &kFlexRow : nullptr;
  }
  return build::find_in(kRows, &OpRow::code, code.builtin);
}

Converter find_exact(const OperatorCode& code) {
  const ExactRow* row = build::find_in(kExactRows, &ExactRow::code, code.builtin);
  return row == nullptr ? nullptr : row->convert;
}

EntryPoint entry_point(const Model& model, std::string_view key) {
  std::string known;
  for (const Signature& signature : model.signatures) {
    known += (known.empty() ? "" : ", ") + std::string(signature.key);
    const bool is_wanted = key.empty() ? signature.subgraph == 0 : signature.key == key;
    if (!is_wanted) continue;
    const Subgraph& graph = model.subgraphs[signature.subgraph];
    return {std::string(signature.key), signature.subgraph,
            unique_ports(graph, graph.inputs, signature.inputs),
            unique_ports(graph, graph.outputs, signature.outputs)};
  }
  if (!key.empty())
    throw Error(ErrorCode::kInvalidArgument, "the model has no signature \"" + std::string(key) + "\"" +
                                                 (known.empty() ? "" : "; it has " + known));
  const Subgraph& graph = model.subgraphs.front();
  return {"", 0, unique_ports(graph, graph.inputs, {}), unique_ports(graph, graph.outputs, {})};
}

build::Missing missing_operators(const Model& model, const EntryPoint& entry, const FlexOperators& flex) {
  build::Missing missing;
  std::set<uint32_t> seen;
  note_missing(model, entry.subgraph, flex, seen, missing);
  return missing;
}

ir::Graph import_graph(const LoadedModel& model, const ImportRequest& request, const ir::OpRegistry& ops) {
  return GraphImport(model, request, ops).run();
}

}  // namespace tensormill::frontend::tflite
