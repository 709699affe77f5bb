/// From a CNTK model to the graph IR: its functions, those within blocks among them, converted one by one
/// (ops.def, blocks.def). Errors: kInvalidModel for a function that does not fit its operands, naming it;
/// kOperatorNotImplemented with all operators that are not supported in its details. Thread-safety: pure
/// functions.
#pragma once

#include "compiler/build/missing.h"
#include "compiler/build/model_graph.h"
#include "compiler/frontend/cntk/loaded_model.h"
#include "compiler/ir/graph.h"

namespace tensormill::frontend::cntk {

/// The operators that are not implemented.
build::Missing missing_operators(const LoadedModel& model);

/// `request`: shapes of the model's inputs, in their order.
ir::Graph import_graph(const LoadedModel& model, const build::GraphRequest& request,
                       const ir::OpRegistry& ops);

}  // namespace tensormill::frontend::cntk
