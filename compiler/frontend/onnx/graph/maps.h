/// Maps among a model's inputs. Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/onnx/model/model_proto.h"

namespace tensormill::frontend::onnx {

/// Replaces each input NAME that is a map, and that nothing but CastMap and DictVectorizer of the graph
/// itself reads, by two tensors, "NAME.keys" and "NAME.values" [NAME.entries], which those nodes read as
/// operands 0 and 1. Others, and those of which the graph has such a name already, stay maps.
void split_maps(GraphProto& graph);

}  // namespace tensormill::frontend::onnx
