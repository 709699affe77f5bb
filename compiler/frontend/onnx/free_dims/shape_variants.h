/// Which dims of a model stay free in its package, and for which extents it is imported.
/// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/frontend/onnx/import_graph.h"
#include "compiler/ir/variants.h"
#include "runtime/base/shape_buckets.h"

namespace tensormill::frontend::onnx {

/// Variants of one package: the product of the buckets' sizes.
inline constexpr int64_t kMaxShapeVariants = 64;

/// The model imported for each combination of the buckets and, where dims stay free, once with symbols for
/// them, where `takes_symbolic` is given and takes it. Where there is neither, for one shape that it takes. A
/// dim is free when input_shapes gives it a name, or when the model gives it no extent and input_shapes none
/// either: then it has the model's name, or, where that has none, its input's and its axis, "x_0"; without
/// free dims there is one graph, or, where a run works out extents that nothing bounds, one whose symbols are
/// these alone. Throws Error(kInvalidArgument) for a bucket of no dim or too many
/// variants, and what import_model throws. What is wrong with a model while dims are free that nobody named
/// is Error(kShapeRequired), which names them.
ir::Variants import_variants(const ModelSource& source, const ImportOptions& options,
                             const ShapeBuckets& buckets, const ir::OpRegistry& ops,
                             const TakesSymbolic& takes_symbolic = {});

/// The same of a model of another format, which `import_graph` imports, and whose import needs no values of a
/// run: where no dim is free, one that has symbols that a run binds is planned with them. Where there is no
/// such plan, the model is one node in its graphs, and stored, so that its runs are interpreted. `source`:
/// what a package holds of the model.
ir::Variants import_variants(const std::function<const ModelSource&()>& source, const ModelFacts& facts,
                             const ImportOptions& options, const ShapeBuckets& buckets,
                             const ImportGraph& import_graph, const TakesSymbolic& takes_symbolic = {});

/// As import_variants; but shapes that need values of a run are left to an interpreter, and a model that
/// needs values of a run before anything can be planned is one node in its graphs (import_as_step), and kept,
/// so that its runs are interpreted.
ir::Variants import_for_package(const ModelSource& source, const ImportOptions& options,
                                const ShapeBuckets& buckets, const ir::OpRegistry& ops,
                                const TakesSymbolic& takes_symbolic = {});

}  // namespace tensormill::frontend::onnx
