/// An If that asks whether there are any of something that a run counts, as "no boxes: no boxes, else those
/// of them that pass a test". Thread-safety: as the builder.
#pragma once

#include <optional>
#include <vector>

#include "compiler/frontend/onnx/converters/control/branch_symbols.h"
#include "compiler/frontend/onnx/graph/builder.h"

namespace tensormill::frontend::onnx {

/// Where one branch is taken of no elements alone and has none as results, and the other one, converted for
/// any number of them, has none of none: the results of the other one, which then is right of any. Nothing
/// where that cannot be shown.
std::optional<std::vector<Binding>> branch_of_some(StructureContext& context,
                                                   const ExtentCondition& condition);

}  // namespace tensormill::frontend::onnx
