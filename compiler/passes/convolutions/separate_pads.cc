// A padded convolution of free extents = a pad, and a convolution without one. Kernels of free extents
// ask of each tap whether it lies inside, unless all do: a 3x3 of 64 channels takes seven times as long with
// the question as after the copy. Kernels of known extents split the borders off instead.
#include <algorithm>

#include "compiler/ir/patch.h"
#include "compiler/ops/map_layout.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

ir::Graph separate_pads(const ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, "separate_pads");
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != "conv" || !node.attrs.has("pads") || !is_generic(context, graph, node)) continue;
    const ir::SymShape pads = node.attrs.sym_ints_of("pads");
    const auto is_none = [](const ir::SymInt& pad) { return is_proven(ir::Relation::kEqual, pad, 0); };
    if (std::all_of(pads.begin(), pads.end(), is_none)) continue;
    const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2);
    const size_t spatial = ops::map_axes(node.attrs, pads.size() / 2 + 2).spatial;
    ir::SymShape around(pads.size() + 4, 0);
    std::copy(pads.begin(), middle, around.begin() + static_cast<std::ptrdiff_t>(spatial));
    std::copy(middle, pads.end(),
              around.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2 + 2 + spatial));
    std::vector<ir::ValueId> inputs = node.inputs;
    inputs[0] = patch.add_node("pad", {inputs[0]}, {{"pads", around}}, node.origins)[0];
    ir::Attrs attrs = node.attrs;
    attrs.set("pads", std::vector<int64_t>(pads.size(), 0));
    patch.replace(node.outputs[0], patch.add_node("conv", std::move(inputs), attrs, node.origins)[0]);
  }
  return patch.apply();
}

}  // namespace tensormill::passes
