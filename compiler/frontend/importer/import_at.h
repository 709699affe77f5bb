/// A model as graphs of its shapes, from imports at one shape each. Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// The options with every free dim bound to 1: for an import of which only the errors are wanted.
ImportOptions with_ones(const ModelFacts& facts, ImportOptions options);

/// Importer::import_for_package of a format whose imports need no values of a run.
ir::Variants import_at_shapes(const Importer& importer, const ImportOptions& options,
                              const ShapeBuckets& buckets, const ir::OpRegistry& ops,
                              const TakesSymbolic& takes_symbolic);

}  // namespace tensormill::frontend
