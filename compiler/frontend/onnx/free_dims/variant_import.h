/// A model with free dims as it is compiled: with symbols for the generic plan, and at the shapes with
/// kernels of their own. Thread-safety: pure functions.
#pragma once

#include <functional>
#include <string>

#include "compiler/frontend/onnx/free_dims/free_dims.h"
#include "compiler/frontend/onnx/import_graph.h"
#include "compiler/ir/variants.h"
#include "runtime/base/error.h"
#include "runtime/base/shape_buckets.h"

namespace tensormill::frontend::onnx {

/// What the graphs are of.
struct VariantModel {
  std::function<const ModelSource&()> source;  ///< what a package holds of it
  const ModelFacts& facts;
  const ImportOptions& options;
  const Signature& signature;
  const ShapeBuckets& buckets;
  ImportGraph import_graph;
  TakesSymbolic takes_symbolic = {};  ///< none: there is no generic plan
  /// Shapes that the import takes with the values of a run alone are left to an interpreter, where it takes
  /// others.
  bool may_lack_values = false;
  /// Where no dim is free there is a plan, too, whose extents a run binds.
  bool binds_symbols = false;
};

/// What is known however the import ends.
struct VariantNotes {
  bool takes_some = false;     ///< some shape was imported
  bool lacks_values = false;   ///< there are shapes that the model takes with the values of a run alone
  bool binds_symbols = false;  ///< a graph of one shape has extents that a run binds
};

/// Throws as import_variants.
ir::Variants import_as_variants(const VariantModel& model, VariantNotes& notes);

/// Whether the import lacks values that a run has: those of inputs that are tensors.
bool lacks_values(const Error& error);
/// Whether it may be extents that a run works out of which an import of one shape is refused.
bool may_want_extents(const Error& error);

}  // namespace tensormill::frontend::onnx
