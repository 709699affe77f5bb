/// A model as graphs of its shapes, from imports at one shape each. Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// The options with every free dim bound to 1: for an import of which only the errors are wanted.
ImportOptions with_ones(const ModelFacts& facts, ImportOptions options);

/// Importer::import_for_package of a format whose imports need no values of a run: where they have extents
/// that a run works out, these are symbols of the graph.
ir::Variants import_at_shapes(const Importer& importer, const ImportOptions& options,
                              const ShapeBuckets& buckets, const ir::OpRegistry& ops,
                              const TakesSymbolic& takes_symbolic);

/// The types of the facts' outputs, as an import at all free dims has them: an extent that is a symbol is a
/// free dim of its name, one that is another expression is free without a name. Where the model cannot be
/// imported so, they stay: an import at the shapes that are asked for says it again, or takes them.
void set_output_types(ModelFacts& facts, const Importer& importer);

/// A package that keeps the model opens it by the signature that was requested (kept_import.h), "": none was,
/// and rounds as was requested.
void keep_choices(ir::Variants& variants, const std::string& signature, const ImportOptions& options);

}  // namespace tensormill::frontend
