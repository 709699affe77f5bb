/// From a Caffe2 model to the graph IR: the net that fills weights, then the net that computes, converted
/// operator by operator (ops.def). Errors: kInvalidModel for an operator that does not fit its operands,
/// naming it; kOperatorNotImplemented with all operators that are not supported in its details.
/// Thread-safety: pure functions.
#pragma once

#include "compiler/build/missing.h"
#include "compiler/build/model_graph.h"
#include "compiler/frontend/caffe2/loaded_model.h"
#include "compiler/frontend/facts/file_graph.h"
#include "compiler/ir/graph.h"

namespace tensormill::frontend::caffe2 {

/// The operators that are not implemented.
build::Missing missing_operators(const Model& model);
FileGraph file_graph(const Model& model);

/// `request`: shapes of the model's inputs, in its order.
ir::Graph import_graph(const LoadedModel& model, const build::GraphRequest& request,
                       const ir::OpRegistry& ops);

}  // namespace tensormill::frontend::caffe2
