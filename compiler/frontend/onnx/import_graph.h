/// What the import of a model with free dims asks of others. Thread-safety: as whoever gives the functions
/// says.
#pragma once

#include <functional>
#include <string>

#include "compiler/frontend/onnx/import.h"
#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// The model at one shape, or with symbols, as the options have it.
/// `tally`: what it has met, or null.
using ImportGraph = std::function<ir::Graph(const ImportOptions& options, ImportTally* tally)>;

/// Whether a plan for all extents can be made of the model as it was imported with symbols. `reason`:
/// receives why not; null: nothing does.
using TakesSymbolic = std::function<bool(const ir::SymbolicModel& model, std::string* reason)>;

}  // namespace tensormill::frontend::onnx
