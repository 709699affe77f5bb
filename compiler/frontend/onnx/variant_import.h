/// A model with free dims as graphs of shapes, for one choice of what the rooms are: samples of the generic
/// plan and the shapes with kernels of their own. Thread-safety: pure functions.
#pragma once

#include <string>

#include "compiler/frontend/onnx/free_dims.h"
#include "compiler/frontend/onnx/import_graph.h"
#include "compiler/frontend/onnx/shared_rooms.h"
#include "compiler/ir/variants.h"
#include "runtime/base/error.h"
#include "runtime/base/shape_buckets.h"

namespace tensormill::frontend::onnx {

/// What the graphs are of.
struct VariantModel {
  const ModelSource& source;
  const ModelFacts& facts;
  const ImportOptions& options;
  const Signature& signature;
  SharedRooms rooms;
  const ShapeBuckets& buckets;
  ImportGraph import_graph;
  ImportStep import_step = {};        ///< none: such a shape is an error, or none that the model takes
  TakesSymbolic takes_symbolic = {};  ///< none: the model is not imported with symbols
};

/// What is known however the import ends.
struct VariantNotes {
  bool takes_some = false;  ///< some shape was imported
  /// There are shapes, of extents that hide nothing, that the model takes with the values of a run alone.
  bool lacks_values = false;
};

/// Throws as import_variants.
ir::Variants import_as_variants(const VariantModel& model, VariantNotes& notes);

/// Whether the import lacks values that a run has: those of inputs that are tensors.
bool lacks_values(const Error& error);
/// Whether there are several samples, all of as many nodes.
bool are_alike(const std::vector<ir::ShapedGraph>& samples);
/// Whether extents of rooms are among what is asked for.
bool name_rooms(const ShapeBuckets& buckets);

}  // namespace tensormill::frontend::onnx
