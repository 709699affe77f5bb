/// What the converters of operators with subgraphs share. Thread-safety: as the builder.
#pragma once

#include <vector>

#include "compiler/frontend/onnx/graph/builder.h"

namespace tensormill::frontend::onnx {

inline Binding tensor(ir::ValueId value) { return {Binding::Kind::kTensor, value, {}}; }

/// How many iterations of the body are unrolled where it could be a loop as well.
int64_t unrolled_trips(const GraphProto& body);
/// Every iteration that is unrolled adds values: throws UnsupportedForm where there are very many.
void check_size(const StructureContext& context);
/// Throws ValueRequired where the value depends on inputs.
bool known_bool(StructureContext& context, const Binding& binding, const char* what);
/// Iterations' outputs along a new axis; `declared` gives the type when there was no iteration.
Binding stacked(StructureContext& context, const std::vector<ir::ValueId>& parts, int64_t axis,
                const ValueInfoProto& declared);

}  // namespace tensormill::frontend::onnx
