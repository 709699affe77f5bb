// A row of softmax that only weighs the rows of a matrix has a weight of 1 / count at least. Weights that are
// no normal numbers, as masks of -100 make them, add nothing to such a sum, but cost some hundred cycles a
// product on most cores: they are computed as zeros.
#include <algorithm>

#include "compiler/ir/patch.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

// Whether all readers of the value are products that add it up along its last axis. A reshape that keeps that
// axis is looked through.
bool is_weights(const ir::Graph& graph, const std::vector<std::vector<ir::NodeId>>& uses, ir::ValueId value) {
  const std::vector<ir::NodeId>& readers = uses[static_cast<size_t>(value)];
  if (readers.empty() || std::count(graph.outputs().begin(), graph.outputs().end(), value) != 0) return false;
  const ir::SymShape& shape = graph.value(value).type.shape;
  return std::all_of(readers.begin(), readers.end(), [&](ir::NodeId id) {
    const ir::Node& node = graph.node(id);
    if (node.op == "reshape") {
      const ir::SymShape& made = graph.value(node.outputs[0]).type.shape;
      return !made.empty() && made.back() == shape.back() && is_weights(graph, uses, node.outputs[0]);
    }
    return node.op == "matmul" && node.inputs[0] == value && node.inputs[1] != value &&
           !ops::attr_bool(node.attrs, "transpose_a", false);
  });
}

}  // namespace

ir::Graph vanishing_weights(const ir::Graph& graph, const PassContext&) {
  ir::Patch patch(graph, "vanishing_weights");
  const std::vector<std::vector<ir::NodeId>> uses = graph.uses();
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != "softmax") continue;
    const ir::SymShape& shape = graph.value(node.outputs[0]).type.shape;
    if (axis_of(node, -1, shape.size()) + 1 != shape.size() || !is_weights(graph, uses, node.outputs[0]))
      continue;
    ir::Attrs attrs = node.attrs;
    attrs.set("weights", int64_t{1});
    patch.replace(node.outputs[0], patch.add_node(node.op, node.inputs, attrs, node.origins)[0]);
  }
  return patch.apply();
}

}  // namespace tensormill::passes
