// The body of a loop is what stands between its begin and its end: what the body only reads moves before it,
// and so runs once. What a branch alone needs moves behind the condition.
#include "compiler/ir/branches.h"
#include "compiler/ir/loops.h"
#include "compiler/ir/patch.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

ir::Graph arrange_loops(const ir::Graph& graph, const PassContext& /*context*/) {
  const bool has_order = !ir::loops_around(graph).empty() || !ir::branches_around(graph).empty();
  return has_order ? ir::reordered(graph, ir::loop_order(graph)) : graph;
}

}  // namespace tensormill::passes
