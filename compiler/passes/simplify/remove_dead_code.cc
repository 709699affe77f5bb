#include "compiler/ir/patch.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

ir::Graph remove_dead_code(const ir::Graph& graph, const PassContext& /*context*/) {
  return ir::remove_dead(graph);
}

}  // namespace tensormill::passes
