// move(cast_wide(x)) = cast_wide(move(x)) for reshape, transpose, slice and expand: the narrow type is moved.
#include "compiler/ir/patch.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

ir::Graph sink_casts(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Graph current = graph;
  for (size_t round = 0; round <= graph.nodes().size(); ++round) {
    ir::Patch patch(current, "sink_casts");
    const std::vector<int> reads = count_reads(current);
    for (const ir::Node& node : current.nodes()) {
      const bool moves =
          node.op == "reshape" || node.op == "transpose" || node.op == "slice" || node.op == "expand";
      const ir::Node* cast = moves ? match(current, node.inputs[0], "cast") : nullptr;
      if (cast == nullptr || reads[static_cast<size_t>(node.inputs[0])] != 1) continue;
      const ir::Value& narrow = current.value(cast->inputs[0]);
      const ir::Value& wide = current.value(node.inputs[0]);
      if (dtype_bytes(narrow.type.dtype) >= dtype_bytes(wide.type.dtype)) continue;
      std::vector<ir::ValueId> inputs = node.inputs;
      inputs[0] = cast->inputs[0];
      const ir::ValueId moved = patch.add_node(node.op, std::move(inputs), node.attrs, node.origins)[0];
      patch.replace(node.outputs[0], patch.add_node("cast", {moved}, cast->attrs, cast->origins)[0]);
    }
    if (patch.empty()) break;
    current = patch.apply();
  }
  return current;
}

}  // namespace tensormill::passes
