#include "compiler/frontend/mxnet/import.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "compiler/build/missing.h"
#include "compiler/frontend/mxnet/node_context.h"
#include "compiler/ir/patch.h"

namespace tensormill::frontend::mxnet {

using build::Missing;

namespace {

struct RefusedRow {
  std::string_view op, why;
};
constexpr RefusedRow kRefused[] = {
#define MXNET_REFUSED(op, why) {op, why},
#include "compiler/frontend/mxnet/refused_ops.def"
#undef MXNET_REFUSED
};

/// Why an operator has no converter; "" where there is nothing to say but that.
std::string reason_of(std::string_view op) {
  const auto* row = std::find_if(std::begin(kRefused), std::end(kRefused),
                                 [&](const RefusedRow& each) { return each.op == op; });
  return row == std::end(kRefused) ? "" : std::string(row->why);
}

void add_missing(Missing& missing, const Node& node, size_t index, const std::string& why) {
  missing.add("op " + node.op.substr(0, 200), why, node_label(node, index), "", std::to_string(index));
}

void note_missing(const Symbol& symbol, const Interface& interface, Missing& missing) {
  for (size_t i = 0; i < symbol.nodes.size(); ++i) {
    const Node& node = symbol.nodes[i];
    if (interface.is_used[i] && !node.is_variable() && find_converter(node.op) == nullptr)
      add_missing(missing, node, i, reason_of(node.op));
  }
}

class SymbolImport {
public:
  SymbolImport(const LoadedModel& loaded, const Interface& interface, const build::GraphRequest& request,
               const ir::OpRegistry& ops)
      : symbol_(loaded.symbol()),
        interface_(interface),
        request_(request),
        graph_(ops),
        reserved_(names_of(interface)),
        state_{loaded, graph_, reserved_} {}

  ir::Graph run() {
    graph_.set_name("main");
    graph_.set_symbols(request_.symbols);
    note_missing(symbol_, interface_, missing_);
    if (!missing_.empty()) missing_.throw_all();
    for (size_t i = 0; i < interface_.inputs.size(); ++i) {
      const Input& input = interface_.inputs[i];
      state_.values.emplace(std::pair(input.node, size_t{0}),
                            build::add_input(graph_, request_, i, input.name, input.dtype));
    }
    convert_all();
    if (!missing_.empty()) missing_.throw_all();
    set_outputs();
    return ir::remove_dead(graph_);
  }

private:
  static std::set<std::string> names_of(const Interface& interface) {
    std::set<std::string> names;
    for (const Input& input : interface.inputs) names.insert(input.name);
    for (const Output& output : interface.outputs) names.insert(output.name);
    return names;
  }

  void convert_all() {
    std::set<size_t> lost;
    for (size_t i = 0; i < symbol_.nodes.size(); ++i) {
      const Node& node = symbol_.nodes[i];
      if (!interface_.is_used[i] || node.is_variable()) continue;
      // What stands behind a node that could not be converted has no operands.
      const bool has_operands = std::none_of(node.inputs.begin(), node.inputs.end(),
                                             [&](const Entry& entry) { return lost.count(entry.node) != 0; });
      if (!has_operands || !convert(i)) lost.insert(i);
    }
  }

  bool convert(size_t index) {
    const Node& node = symbol_.nodes[index];
    const std::string label = node_label(node, index);
    const ir::SymbolTable::Origin origin(graph_.symbols().get(), label);
    NodeContext context(state_, index, label);
    try {
      find_converter(node.op)(context);
      context.check_read();
      return true;
    } catch (const UnsupportedForm& form) {
      add_missing(missing_, node, index, form.attribute + ": " + form.reason);
      return false;
    } catch (Error& error) {
      error.add_context("node " + std::to_string(index) + ", " + node.op.substr(0, 200) + " \"" + label +
                        "\"");
      if (error.code() == ErrorCode::kInvalidTensor) throw Error(ErrorCode::kInvalidModel, error.message());
      throw;
    }
  }

  V value_of(const Output& output) {
    const auto found = state_.values.find({output.entry.node, output.entry.index});
    if (found != state_.values.end()) return found->second;
    const Node& node = symbol_.nodes[output.entry.node];
    const Parameter* parameter = node.is_variable() ? state_.loaded.find(node.name) : nullptr;
    if (parameter == nullptr || output.entry.index != 0)
      throw Error(ErrorCode::kInvalidModel,
                  "nothing makes the output \"" + output.name.substr(0, 200) + "\"");
    return graph_.add_constant(graph_.unique_name("constant"), state_.loaded.tensor(*parameter));
  }

  void set_outputs() {
    std::vector<std::string> names;
    for (const Output& output : interface_.outputs) names.push_back(output.name);
    build::set_outputs(graph_, request_, names, [&](size_t i) { return value_of(interface_.outputs[i]); });
  }

  const Symbol& symbol_;
  const Interface& interface_;
  const build::GraphRequest& request_;
  ir::Graph graph_;
  const std::set<std::string> reserved_;
  Missing missing_{"operator", "node"};
  ImportState state_;
};

struct OpRow {
  std::string_view op;
  Converter convert;
};
constexpr OpRow kOps[] = {
#define MXNET_OP(op, convert) {op, &convert},
#include "compiler/frontend/mxnet/ops.def"
#undef MXNET_OP
};

}  // namespace

Converter find_converter(std::string_view op) {
  const auto* row =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const OpRow& each) { return each.op == op; });
  return row == std::end(kOps) ? nullptr : row->convert;
}

std::vector<ErrorDetail> unsupported_operators(const Symbol& symbol, const Interface& interface) {
  Missing missing("operator", "node");
  note_missing(symbol, interface, missing);
  return missing.details();
}

ir::Graph import_graph(const LoadedModel& model, const Interface& interface,
                       const build::GraphRequest& request, const ir::OpRegistry& ops) {
  return SymbolImport(model, interface, request, ops).run();
}

}  // namespace tensormill::frontend::mxnet
