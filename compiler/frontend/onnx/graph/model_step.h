/// A whole model as one node of a graph. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/frontend/onnx/model/model_proto.h"
#include "compiler/ir/graph.h"

namespace tensormill::frontend::onnx {

/// `graph`, which has the model's inputs, with the outputs that are requested (`wanted`; none: the model's)
/// and the node of ops/model_step.cc between them. A sequence is NAME, its elements along the first axis, and
/// NAME.extents; an optional value or sequence has NAME.present, too. Throws kNotSupported naming an output
/// of another kind, or that is none of the model's.
ir::Graph with_model_step(ir::Graph graph, const GraphProto& model, std::vector<std::string> wanted,
                          const std::string& reason);

/// A graph of the inputs and the outputs of `model`, with such a node in place of all others.
ir::Graph as_model_step(const ir::Graph& model, const std::string& reason);

}  // namespace tensormill::frontend::onnx
