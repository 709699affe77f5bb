/// From a Core ML model to the graph IR: a function of its ML Program, converted operation by operation
/// (ops.def). Types follow the program: what computes in fp16 there computes in f16 here. Errors:
/// kInvalidModel for an operation that does not fit its operands, naming it; kOperatorNotImplemented with all
/// operations that are not supported in its details. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/missing.h"
#include "compiler/build/model_graph.h"
#include "compiler/frontend/coreml/loaded_model.h"
#include "compiler/frontend/facts/file_graph.h"
#include "compiler/ir/graph.h"

namespace tensormill::frontend::coreml {

/// The function of that name; for "" the one that the description names, "main", or the only one. Throws
/// Error(kInvalidArgument) listing the functions that there are.
const Function& entry_function(const Model& model, std::string_view name);
/// The names of its results, each once, and behind them one for each of its states: an input that says what
/// the state is when a run begins, and an output that says what it is then. "kv" becomes "kv_out".
std::vector<std::string> output_names(const Function& function);
/// The state that an output of that name says; "" for a result.
std::string_view state_of(const Function& function, std::string_view output);
/// What makes or passes in a value of the function's outermost block, or the state that an output says; null
/// where nothing does.
const ValueType* type_of(const Function& function, std::string_view value);

/// The operations that are not implemented, those of blocks within others, too.
build::Missing missing_operations(const Function& function);
FileGraph file_graph(const Function& function);

struct ImportRequest : build::GraphRequest {
  const Function* function = nullptr;
};
/// Throws as above; Error(kInvalidArgument) for an extent outside of what the description says of an input.
ir::Graph import_graph(const LoadedModel& model, const ImportRequest& request, const ir::OpRegistry& ops);

}  // namespace tensormill::frontend::coreml
