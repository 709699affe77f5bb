/// What the import of a model with free dims asks of others. Thread-safety: as whoever gives the functions
/// says.
#pragma once

#include <functional>
#include <string>

#include "compiler/frontend/onnx/import.h"
#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// The model at one shape; `stop` and `tally` as CheckedModel::import has them, or null.
using ImportGraph =
    std::function<ir::Graph(const ImportOptions& options, ImportStop* stop, ImportTally* tally)>;
/// It as one node at a shape of which the import lacks values of a run; the message says which.
using ImportStep = std::function<ir::Graph(const ImportOptions& options, const std::string& message)>;

/// Whether a plan for all extents can be made of the model as it was imported with symbols.
using TakesSymbolic = std::function<bool(const ir::SymbolicModel& model)>;

}  // namespace tensormill::frontend::onnx
