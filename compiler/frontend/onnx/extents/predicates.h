/// Comparisons of integers that say how large something is: of some the answer is known though a run works
/// the integers out. Thread-safety: as the context.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/frontend/onnx/extents/bounds.h"

namespace tensormill::frontend::onnx {

/// By element of a small bool value, nothing where it is not known: what compares known integers with each
/// other, or a bounded one with what is below the least that it can be. An upper bound decides nothing.
/// `numbers_of`: the integers of a value, as bounds_of says them.
std::vector<std::optional<bool>> predicates_of(const ir::Graph& graph, ir::ValueId value,
                                               const std::function<BoundedInts(ir::ValueId)>& numbers_of);
/// The same of a value of one element.
std::optional<bool> static_predicate(const NodeContext& context, ir::ValueId value);

}  // namespace tensormill::frontend::onnx
