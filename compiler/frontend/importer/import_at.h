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

/// The types of the facts' outputs, as the graph has them: an extent that is a symbol is a free dim of its
/// name, one that is another expression is free without a name.
void set_output_types(ModelFacts& facts, const ir::Graph& graph);

/// A package that keeps the model opens it by the signature that was requested (kept_import.h), "": none was,
/// and rounds as was requested.
void keep_choices(ir::Variants& variants, const std::string& signature, const ImportOptions& options);

}  // namespace tensormill::frontend
