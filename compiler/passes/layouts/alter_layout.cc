// f32 convolutions compute on blocked tensors [N,C/b,spatial...,b], b being the target's lanes, with
// weights packed here. The layout flows on through everything that takes it; transforms stay where plain
// tensors come in or are wanted, and a concatenation, split or shuffle of channels is only bookkeeping until
// someone reads it (channel_form.h). Blocked layouts and their propagation: Liu et al., Optimizing CNN Model
// Inference on CPUs, USENIX ATC 2019, sections 3.1 and 3.2.
#include "compiler/passes/layouts/layout_rewriter.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

ir::Graph alter_layout(const ir::Graph& graph, const PassContext& context) {
  return simplify_graph(LayoutRewriter(graph, context.facts.lanes(32), context.layout).run(), context);
}

}  // namespace tensormill::passes
