/// Branches of an If as loops of one iteration, or of none: what binds symbols in a branch is an iteration
/// that does. Thread-safety: as the builder.
#pragma once

#include <optional>
#include <vector>

#include "compiler/frontend/onnx/graph/builder.h"

namespace tensormill::frontend::onnx {

/// The results of the branch that `condition` (bool [1]) says. Each branch sees the extents around it as
/// symbols of its own, which it binds, so that what its nodes demand has to hold where it is taken alone.
/// Extents in which the results differ are symbols that the run binds behind both. Nothing where a branch
/// cannot be converted so, or a result is no tensor of one type and rank: then nothing is noted.
std::optional<std::vector<Binding>> branch_loops(StructureContext& context, ir::ValueId condition);

}  // namespace tensormill::frontend::onnx
