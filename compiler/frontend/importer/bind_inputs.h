/// The shapes at which a model is imported, of what its own signature and the options say. Thread-safety:
/// pure functions.
#pragma once

#include <memory>
#include <vector>

#include "compiler/build/model_graph.h"
#include "compiler/frontend/importer/importer.h"
#include "compiler/frontend/onnx/model/check_model.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

struct BoundInputs {
  std::vector<ir::SymShape> shapes;          ///< one an input of the model
  std::shared_ptr<ir::SymbolTable> symbols;  ///< null where the options have none
};
/// Throws Error(kInvalidArgument) for a name that no input has, another rank or another extent than the
/// model's; Error(kShapeRequired) for a free dim that nothing binds.
BoundInputs bind_inputs(const ModelFacts& facts, const ImportOptions& options);
/// The same with all else that the options say of a graph, and strings with their width: what their shape
/// says behind the model's extents, kTextWidth otherwise. Throws as above.
build::GraphRequest graph_request(const ModelFacts& facts, const ImportOptions& options);

/// action(); an error that operators are not implemented says what is known of the model.
template <typename Action>
auto with_facts(const ModelFacts& facts, const Action& action) {
  try {
    return action();
  } catch (Error& error) {
    if (error.code() == ErrorCode::kOperatorNotImplemented)
      error.set_extra_json("{\"model\":" + onnx::facts_json(facts) + "}");
    throw;
  }
}

/// An importer of the type Made; an error says that it was one of a model of this kind.
template <typename Made, typename... Arguments>
std::unique_ptr<Importer> made_importer(const char* kind, Arguments&&... arguments) {
  try {
    return std::make_unique<Made>(std::forward<Arguments>(arguments)...);
  } catch (Error& error) {
    error.add_context(kind);
    throw;
  }
}

}  // namespace tensormill::frontend
