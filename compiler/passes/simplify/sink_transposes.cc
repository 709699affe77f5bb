// f(transpose(x)) = transpose(f(x)) for elementwise f: transposes move toward the outputs, where they cancel
// with others or reach the end once. Operands with one element need no transpose. Maps that a model has with
// their channels last between convolutions go with more than that: through pads, concatenations, reductions,
// and through values that have several readers.
#include <optional>

#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "compiler/passes/layouts/layout_converter.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

/// The permutation that all operands of `node` share, when sinking it makes no transpose more than before.
std::optional<std::vector<int64_t>> shared_perm(const ir::Graph& graph, const ir::Node& node,
                                                const std::vector<int>& reads) {
  std::optional<std::vector<int64_t>> perm;
  for (ir::ValueId input : node.inputs) {
    if (input == ir::kAbsent) return std::nullopt;
    if (num_elements(graph.value(input).type.shape) == 1) continue;
    const ir::Node* transpose = match(graph, input, "transpose");
    if (transpose == nullptr || reads[static_cast<size_t>(input)] != 1) return std::nullopt;
    const std::vector<int64_t> mine = permutation_of(graph, *transpose);
    if (perm && *perm != mine) return std::nullopt;
    if (graph.value(input).type.shape != graph.value(node.outputs[0]).type.shape) return std::nullopt;
    perm = mine;
  }
  return perm;
}

}  // namespace

ir::Graph sink_transposes(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Graph current = graph;
  // One step down per round; a transpose passes each node at most once.
  for (size_t round = 0; round <= graph.nodes().size(); ++round) {
    ir::Patch patch(current, "sink_transposes");
    const std::vector<int> reads = count_reads(current);
    for (const ir::Node& node : current.nodes()) {
      // Normalization is elementwise too, but its operands belong to dimension 1, which the transpose moves.
      if (node.op == "fused" || node.op == "batch_norm" || node.outputs.size() != 1) continue;
      if (current.ops().get(node.op).pattern != ir::Pattern::kElementwise) continue;
      const std::optional<std::vector<int64_t>> perm = shared_perm(current, node, reads);
      if (!perm) continue;
      std::vector<ir::ValueId> inputs;
      for (ir::ValueId input : node.inputs) {
        const bool scalar = num_elements(current.value(input).type.shape) == 1;
        inputs.push_back(scalar ? input : match(current, input, "transpose")->inputs[0]);
      }
      const ir::ValueId inner = patch.add_node(node.op, std::move(inputs), node.attrs, node.origins)[0];
      const ir::ValueId outer = patch.add_node("transpose", {inner}, {{"perm", *perm}}, node.origins)[0];
      if (patch.value(outer).type == current.value(node.outputs[0]).type)
        patch.replace(node.outputs[0], outer);
    }
    if (patch.empty()) break;
    current = patch.apply();
  }
  return LayoutConverter::without_turned_maps(current);
}

}  // namespace tensormill::passes
