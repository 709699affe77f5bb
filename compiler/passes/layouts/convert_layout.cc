// Maps are computed in the layout that was asked for. The layout is an attribute of the operators over maps
// (ops/map_layout.h) and an order of axes of the others, so that transposes stand only where maps of another
// layout come in or are wanted: at the model's inputs and outputs, and at operators that take no map. (What
// TVM's ConvertLayout does by inserting layout_transform and cancelling it again.)
#include "compiler/passes/layouts/layout_converter.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

ir::Graph convert_layout(const ir::Graph& graph, const PassContext& context) {
  if (!context.layout) return graph;
  LayoutLog log;
  ir::Graph converted = LayoutConverter(graph, *context.layout).run(log);
  if (context.layout_log != nullptr) *context.layout_log = std::move(log);
  return converted;
}

}  // namespace tensormill::passes
