/// Elements of lists that are as long as a free dim or a run says (TensorList::length). Thread-safety: as the
/// graph.
#pragma once

#include <optional>

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

/// By how much a scalar is more than `from`, where it is that with known integers added.
std::optional<int64_t> distance_from(const NodeContext& node, V from, V value);
/// The row of such a list of rows that begins there and is so long, i64 of one element each: its extent is a
/// symbol that a run binds.
V row_at(NodeContext& node, const TensorList& list, V begin, V length);
/// The element whose place operand `index` says: that of a loop's iteration, or any that is set. A run in
/// which the list has no such place fails.
V open_element(NodeContext& node, const TensorList& list, size_t index);
/// The list with operand `value` as the element of a loop's iteration, or as the next of its first ones.
TensorList with_element(NodeContext& node, TensorList list, size_t index, size_t value);

}  // namespace tensormill::frontend::tensorflow
