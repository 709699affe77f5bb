// matmul(x, transposed B) with a constant B = matmul(x, B turned round): the kernel's vectors lie along the
// rows of B that it reads. What pack_matmul packs needs no turning: this is for generic plans, of which it
// does not take all, and for the types that it does not take.
#include <map>

#include "compiler/ir/patch.h"
#include "compiler/ops/type_rules.h"
#include "compiler/ops/windows/blocked.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

bool applies(const ir::Graph& graph, const ir::Node& node, const PassContext& context) {
  if (node.op != "matmul" || !ops::attr_bool(node.attrs, "transpose_b", false)) return false;
  const ir::Value& matrix = graph.value(node.inputs[1]);
  return matrix.constant && matrix.type.shape.size() == 2 && is_float(matrix.type.dtype) &&
         (is_generic(context, graph, node) || matrix.type.dtype != DType::kFloat32);
}

}  // namespace

ir::Graph transpose_constants(const ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, "transpose_constants");
  std::map<ir::ValueId, ir::ValueId> made;
  for (const ir::Node& node : graph.nodes()) {
    if (!applies(graph, node, context)) continue;
    const ir::Value& matrix = graph.value(node.inputs[1]);
    const auto [found, is_new] = made.try_emplace(node.inputs[1], ir::kAbsent);
    const Shape turned = {matrix.type.shape[1], matrix.type.shape[0]};
    if (is_new)
      found->second =
          patch.add_constant(matrix.name + ".turned", ops::permuted(*matrix.constant, {1, 0}, turned));
    ir::Attrs attrs = node.attrs;
    attrs.set("transpose_b", int64_t{0});
    patch.replace(node.outputs[0],
                  patch.add_node("matmul", {node.inputs[0], found->second}, attrs, node.origins)[0]);
  }
  return patch.apply();
}

}  // namespace tensormill::passes
