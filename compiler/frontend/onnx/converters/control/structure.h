/// Operators on sequences, optional values and subgraphs, declared for the rows of structure_ops.def.
/// Thread-safety: as the builder.
#pragma once

#include "compiler/frontend/onnx/graph/builder.h"

namespace tensormill::frontend::onnx {

#define TM_STRUCTURE_OP(domain, op, since, until, function) \
  std::optional<std::vector<Binding>> function(StructureContext& context);
#include "compiler/frontend/onnx/operators/structure_ops.def"
#undef TM_STRUCTURE_OP

}  // namespace tensormill::frontend::onnx
