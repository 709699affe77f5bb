#include "compiler/frontend/mxnet/import.h"

#include <array>

#include "compiler/build/format_import.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

constexpr build::RefusedRow kRefused[] = {
#define MXNET_REFUSED(op, why) {op, why},
#include "compiler/frontend/mxnet/refused_ops.def"
#undef MXNET_REFUSED
};

build::NodePlace place_of(const Symbol& symbol, size_t index) {
  const Node& node = symbol.nodes[index];
  const std::string op = node.op.substr(0, 200), label = node_label(node, index);
  return {"op " + op, label, "", std::to_string(index), build::numbered_node("node", index, op, label)};
}

class SymbolImport final : public build::FormatImport {
public:
  SymbolImport(const LoadedModel& loaded, const Interface& interface, const build::GraphRequest& request,
               const ir::OpRegistry& ops)
      : FormatImport(ops, request,
                     {"main", build::names_of(interface.inputs), build::names_of(interface.outputs)},
                     missing_operators(loaded.symbol(), interface)),
        symbol_(loaded.symbol()),
        interface_(interface),
        state_{loaded, graph_, reserved_} {}

private:
  bool convert_all() override {
    for (size_t i = 0; i < interface_.inputs.size(); ++i) {
      const Input& input = interface_.inputs[i];
      state_.values.emplace(std::pair(input.node, size_t{0}), add_input(i, input.dtype));
    }
    build::LostValues<size_t> lost;
    for (size_t i = 0; i < symbol_.nodes.size(); ++i) {
      const Node& node = symbol_.nodes[i];
      if (!interface_.is_used[i] || node.is_variable()) continue;
      std::vector<size_t> read;
      for (const Entry& entry : node.inputs) read.push_back(entry.node);
      lost.convert(read, std::array{i}, [&] { return convert(i); });
    }
    return lost.is_whole();
  }

  bool convert(size_t index) {
    const Node& node = symbol_.nodes[index];
    const std::string label = node_label(node, index);
    return try_convert(
        label, [&] { return place_of(symbol_, index); },
        [&] {
          NodeContext context(state_, index, label);
          find_converter(node.op)(context);
          context.check_read();
        });
  }

  V output(size_t index) override {
    const Output& output = interface_.outputs[index];
    const auto found = state_.values.find({output.entry.node, output.entry.index});
    if (found != state_.values.end()) return found->second;
    const Node& node = symbol_.nodes[output.entry.node];
    const Parameter* parameter = node.is_variable() ? state_.loaded.find(node.name) : nullptr;
    if (parameter == nullptr || output.entry.index != 0)
      throw Error(ErrorCode::kInvalidModel,
                  "nothing makes the output \"" + output.name.substr(0, 200) + "\"");
    return graph_.add_constant(graph_.unique_name("constant"), state_.loaded.tensor(*parameter));
  }

  const Symbol& symbol_;
  const Interface& interface_;
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
  const OpRow* row = build::find_in(kOps, &OpRow::op, op);
  return row == nullptr ? nullptr : row->convert;
}

build::Missing missing_operators(const Symbol& symbol, const Interface& interface) {
  build::Missing missing;
  for (size_t i = 0; i < symbol.nodes.size(); ++i) {
    const Node& node = symbol.nodes[i];
    if (interface.is_used[i] && !node.is_variable() && find_converter(node.op) == nullptr)
      missing.add(place_of(symbol, i), build::reason_of(kRefused, node.op));
  }
  return missing;
}

ir::Graph import_graph(const LoadedModel& model, const Interface& interface,
                       const build::GraphRequest& request, const ir::OpRegistry& ops) {
  return SymbolImport(model, interface, request, ops).run();
}

}  // namespace tensormill::frontend::mxnet
