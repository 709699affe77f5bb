// cumsum and cumprod as kernels compute each element from its own prefix, which is quadratic in the extent:
// along long rows, and along those of free extents, which may be of any length, a host step takes one pass.
#include "compiler/ir/patch.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

/// Elements of a row from which on the host is faster.
constexpr int64_t kLongRow = 128;

}  // namespace

ir::Graph linear_totals(const ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, "linear_totals");
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != "cumsum" && node.op != "cumprod") continue;
    const ir::SymShape& shape = graph.value(node.inputs[0]).type.shape;
    const size_t axis = ops::normal_axis(node.attrs.int_of("axis"), shape.size());
    if (!is_generic(context, graph, node) && shape[axis] < kLongRow) continue;
    const ir::Attrs attrs{{"axis", static_cast<int64_t>(axis)},
                          {"product", int64_t{node.op == "cumprod"}},
                          {"exclusive", ops::attr_int(node.attrs, "exclusive", 0)},
                          {"reverse", ops::attr_int(node.attrs, "reverse", 0)}};
    patch.replace(node.outputs[0],
                  patch.add_node("running_totals", {node.inputs[0]}, attrs, node.origins)[0]);
  }
  return patch.apply();
}

}  // namespace tensormill::passes
