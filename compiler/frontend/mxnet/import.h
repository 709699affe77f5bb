/// From an MXNet symbol and its parameters to the graph IR, node by node (ops.def), as a run without training
/// has it. Types follow the symbol. Errors: kInvalidModel for a node that does not fit its operands, naming
/// it; kOperatorNotImplemented with all operators that are not supported in its details. Thread-safety: pure
/// functions.
#pragma once

#include "compiler/build/missing.h"
#include "compiler/build/model_graph.h"
#include "compiler/frontend/facts/file_graph.h"
#include "compiler/frontend/mxnet/interface.h"
#include "compiler/frontend/mxnet/loaded_model.h"
#include "compiler/ir/graph.h"

namespace tensormill::frontend::mxnet {

/// The operators that are not implemented.
build::Missing missing_operators(const Symbol& symbol, const Interface& interface);
FileGraph file_graph(const Model& model, const Interface& interface);

/// The request's shapes stand in the order of the interface's inputs. Throws as above.
ir::Graph import_graph(const LoadedModel& model, const Interface& interface,
                       const build::GraphRequest& request, const ir::OpRegistry& ops);

}  // namespace tensormill::frontend::mxnet
