#include "compiler/frontend/importer/trim_counted.h"

#include "compiler/frontend/onnx/extents/data_extents.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

ir::Graph trim_counted(ir::Graph graph) {
  const std::optional<onnx::MixedExtent> mixed = onnx::trim_outputs(graph);
  if (!mixed) return graph;
  throw Error(ErrorCode::kOperatorNotImplemented,
              "node \"" + mixed->node +
                  "\": an operand is as long as a run decides, and is not computed element by element");
}

}  // namespace tensormill::frontend
