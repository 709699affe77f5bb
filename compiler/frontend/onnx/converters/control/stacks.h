/// Sequences of which a run works out how many elements there are, or how large each is: stacks, one tensor
/// with the elements along its first axis, and a table of their extents where they differ.
/// Thread-safety: as the builder.
#pragma once

#include <string>
#include <vector>

#include "compiler/frontend/onnx/graph/builder.h"

namespace tensormill::frontend::onnx {

/// What an element of a stack looks like.
struct ElementForm {
  ir::ValueType type;          ///< at the largest extents
  std::vector<size_t> uneven;  ///< axes along which elements differ, or of which a run works out the extent
  bool is_uneven(size_t axis) const;
};

/// Where parts of an axis begin, and how long they are: i64 [parts].
struct Parts {
  ir::ValueId starts = ir::kAbsent, lengths = ir::kAbsent;
};

/// Elements along the first axis of `x`, no other axis of which is as long as data says.
Binding stack(ir::ValueId x);
/// The parts of x along `axis`, none longer than `capacity`: each in as many elements, zeros behind its own.
Binding parts_at(const StructureContext& context, ir::ValueId x, int64_t axis, const Parts& parts,
                 const ir::SymInt& capacity);
bool is_sequence(const Binding& binding);
/// The form that the elements have, all of them; nothing for an empty list. Throws UnsupportedForm, naming
/// `what`, for elements of different types or ranks, or whose extents are not statically known.
std::optional<ElementForm> element_form(StructureContext& context, const Binding& sequence,
                                        const std::string& what);
ElementForm form_of_element(StructureContext& context, ir::ValueId x, const std::string& what);
/// One that holds both; throws as element_form.
ElementForm common_form(const StructureContext& context, const ElementForm& a, const ElementForm& b,
                        const std::string& what);
/// A sequence, which a list that is not empty is, as a stack of elements of that form.
Binding in_form(StructureContext& context, const Binding& sequence, const ElementForm& form);
/// A stack, or the elements of a list that is not empty; throws as element_form.
Binding stacked_elements(StructureContext& context, const Binding& sequence, const std::string& what);
/// The extents of a stack's elements, i64 [elements, rank], also where all have the same.
ir::ValueId table_of(StructureContext& context, const Binding& all);
/// A row of the table that a stack of such elements has: the extents of x, i64 [1, rank].
ir::ValueId extents_row(StructureContext& context, ir::ValueId x);
/// x with the capacity of the form.
ir::ValueId with_capacity(NodeContext& node, ir::ValueId x, const ir::SymShape& shape);
/// x, an element at the largest extents, as large as the row of a table says: i64 [1, rank].
ir::ValueId element_as(const StructureContext& context, ir::ValueId x, const std::vector<size_t>& uneven,
                       ir::ValueId row);
/// An optional value that may hold x, and whether it does (bool [1]).
Binding maybe(ir::ValueId x, ir::ValueId present);
/// The tensor that an optional value or a tensor is or may hold, or kAbsent.
ir::ValueId held(const Binding& binding);
/// Whether an optional value, a tensor or a sequence holds one, bool [1].
ir::ValueId presence(StructureContext& context, const Binding& binding);
/// How many elements there are, i64 [1].
ir::ValueId number_of_elements(StructureContext& context, const Binding& sequence);

/// The operators on a stack. `position` (integers, one element) counts from the end where it is negative; a
/// run fails where it is none, unless it is in a branch that is not taken.
ir::ValueId stack_element(StructureContext& context, const Binding& all, ir::ValueId position);
/// `position`: kAbsent for behind the last.
Binding stack_with(StructureContext& context, const Binding& all, ir::ValueId element, ir::ValueId position);
Binding stack_without(StructureContext& context, const Binding& all, ir::ValueId position);
/// The element of a place that there is in each run.
ir::ValueId element_at(const StructureContext& context, const Binding& all, int64_t place);
/// The elements, with as much capacity as the largest of them needs in a run.
ir::ValueId as_large_as_needed(const StructureContext& context, const Binding& all);
/// Joined along `axis` of the elements, or of a new axis there. A run fails whose elements differ along an
/// axis along which they must not.
ir::ValueId joined_stack(StructureContext& context, const Binding& all, int64_t axis, bool is_new);
/// The same of a list that is not empty.
ir::ValueId joined_elements(StructureContext& context, const std::vector<ir::ValueId>& elements, int64_t axis,
                            bool is_new);
/// x with its axis `from` at `to`, the others in their order.
ir::ValueId with_axis_at(NodeContext& node, ir::ValueId x, int64_t from, int64_t to);

}  // namespace tensormill::frontend::onnx
