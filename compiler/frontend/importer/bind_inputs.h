/// The shapes at which a model is imported, of what its own signature and the options say. Thread-safety:
/// pure functions.
#pragma once

#include <memory>
#include <vector>

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

struct BoundInputs {
  std::vector<ir::SymShape> shapes;          ///< one an input of the model
  std::shared_ptr<ir::SymbolTable> symbols;  ///< null where the options have none
};
/// Throws Error(kInvalidArgument) for a name that no input has, another rank or another extent than the
/// model's; Error(kShapeRequired) for a free dim that nothing binds.
BoundInputs bind_inputs(const ModelFacts& facts, const ImportOptions& options);

}  // namespace tensormill::frontend
