// take_first of numbers is a host step that copies what is there and puts zeros behind. So does the kernel of
// fill_behind, which is fused with what it reads and with what reads it. But take_first also gives no count
// past the extent: so where its importer says that the number fits. Where it says that there are zeros behind
// already nothing is left to do.
#include "compiler/ir/patch.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

ir::Graph fill_taken(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Patch patch(graph, "fill_taken");
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != "take_first" || !node.attrs.has("fits")) continue;
    if (node.attrs.has("zeros")) {
      patch.replace(node.outputs[0], node.inputs[0]);
      patch.replace(node.outputs[1], node.inputs[1]);
      continue;
    }
    if ((ops::kNumeric & ops::set_of(graph.value(node.inputs[0]).type.dtype)) == 0) continue;
    const ir::Attrs attrs{{"axis", node.attrs.int_of("axis")}, {"with", std::string("zero")}};
    patch.replace(node.outputs[0],
                  patch.add_node("fill_behind", {node.inputs[0], node.inputs[1]}, attrs, node.origins)[0]);
    patch.replace(node.outputs[1], node.inputs[1]);
  }
  return patch.apply();
}

}  // namespace tensormill::passes
