#include "compiler/frontend/tensorflow/single_node.h"

#include <algorithm>

#include "compiler/frontend/tensorflow/graph_proto.h"
#include "compiler/frontend/tensorflow/node_context.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// What needs other nodes of its graph, variables, functions or a file of the model.
bool needs_its_graph(const OpRow& row) {
  constexpr Converter kNeed[] = {
      &convert_placeholder,   &convert_const,          &convert_call,           &convert_if,
      &convert_case,          &convert_while,          &convert_switch,         &convert_merge,
      &convert_restore,       &convert_table_handle,   &convert_table_fill,     &convert_table_find,
      &convert_table_size,    &convert_table_export,   &convert_nothing,        &convert_variable_handle,
      &convert_read_variable, &convert_variable_shape, &convert_is_initialized, &convert_resource_gather};
  return std::find(std::begin(kNeed), std::end(kNeed), row.convert) != std::end(kNeed);
}

}  // namespace

bool is_single_node(std::string_view op) {
  const OpRow* row = find_row(op);
  return row != nullptr && !needs_its_graph(*row);
}

std::vector<ir::ValueId> add_single_node(ir::Graph& graph, const std::set<std::string>& reserved,
                                         std::string_view node_def,
                                         const std::vector<ir::ValueId>& operands) {
  const Node node = GraphProtoReader().single_node(node_def);
  if (!is_single_node(node.op))
    throw build::UnsupportedForm{"operator",
                                 "TensorFlow's \"" + std::string(node.op) + "\" is not implemented"};
  const LoadedModel none(nullptr, SavedModel{});
  ImportState state{none, graph, reserved};
  std::vector<Item> items;
  for (const ir::ValueId operand : operands) items.push_back({operand, {}});
  NodeContext context(state, node, *find_row(node.op), std::move(items), nullptr);
  convert_node(context, find_row(node.op)->convert);
  context.check_read();
  std::vector<ir::ValueId> results;
  for (const Item& item : context.take_outputs()) {
    const V* value = std::get_if<V>(&item.value);
    if (value == nullptr) context.unsupported("operator", "results that are no tensors are not implemented");
    results.push_back(*value);
  }
  return results;
}

}  // namespace tensormill::frontend::tensorflow
