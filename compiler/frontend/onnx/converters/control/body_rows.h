/// Rows of values outside of a loop that its iterations read one after the other. Thread-safety: as the
/// builder.
#pragma once

#include <vector>

#include "compiler/frontend/onnx/graph/builder.h"

namespace tensormill::frontend::onnx {

struct BodyRows {
  std::vector<ir::ValueId> wholes;  ///< along their first axis
  /// The loop's body, with a row of each as its last inputs.
  GraphProto body;
};
/// Of a body of Loop that takes rows by the number of the iteration, of which there are `trips` at most:
/// those of values that have as many. A loop has them without an index, and where they are none it has no
/// iteration that would look for one.
BodyRows find_rows(const StructureContext& context, const GraphProto& body, const ir::SymInt& trips);

}  // namespace tensormill::frontend::onnx
