/// Sequences of which a run works out how many elements there are: stacks, one tensor with the elements along
/// its first axis, all of one type and shape. Thread-safety: as the builder.
#pragma once

#include <string>

#include "compiler/frontend/onnx/builder.h"

namespace tensormill::frontend::onnx {

/// Elements along the first axis of `x`.
Binding stack(ir::ValueId x);
bool is_sequence(const Binding& binding);
/// The type that all elements of a sequence have, and any value that is given; nothing for an empty list.
/// Throws UnsupportedForm, naming `what`, for elements of different types, of strings, or whose extents
/// depend on data.
std::optional<ir::ValueType> element_type(StructureContext& context, const Binding& sequence,
                                          const std::string& what);
/// The tensor of a stack, or of the elements of a list that is not empty; throws as element_type.
ir::ValueId stacked_elements(StructureContext& context, const Binding& sequence, const std::string& what);
/// An optional value that may hold x, and whether it does (bool [1]).
Binding maybe(ir::ValueId x, ir::ValueId present);
/// The tensor that an optional value or a tensor is or may hold, or kAbsent.
ir::ValueId held(const Binding& binding);
/// Whether an optional value or a tensor holds one, bool [1].
ir::ValueId presence(StructureContext& context, const Binding& binding);
/// How many elements there are, i64 [1].
ir::ValueId number_of_elements(StructureContext& context, const Binding& sequence);

/// The operators on a stack x. `position` (integers, one element) counts from the end where it is negative; a
/// run fails where it is none, unless it is in a branch that is not taken.
ir::ValueId stack_element(StructureContext& context, ir::ValueId x, ir::ValueId position);
/// `position`: kAbsent for behind the last.
Binding stack_with(StructureContext& context, ir::ValueId x, ir::ValueId element, ir::ValueId position);
Binding stack_without(StructureContext& context, ir::ValueId x, ir::ValueId position);
/// Joined along `axis` of the elements, or of a new axis there.
ir::ValueId joined_stack(StructureContext& context, ir::ValueId x, int64_t axis, bool is_new);
/// x with its axis `from` at `to`.
ir::ValueId with_axis_at(NodeContext& context, ir::ValueId x, int64_t from, int64_t to);

}  // namespace tensormill::frontend::onnx
