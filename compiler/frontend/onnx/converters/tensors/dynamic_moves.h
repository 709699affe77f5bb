/// Moves by dynamic operands: a run works out their shapes, axes, places or pads. Thread-safety: as the
/// context.
#pragma once

#include <string>

#include "compiler/frontend/onnx/extents/bounds.h"
#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

/// Beyond any extent all steps are alike.
inline constexpr int64_t kMostStep = int64_t{1} << 31;

/// A number as i64 [1]; a run fails in which it is less than `least`, or so large (2^31) that what is made of
/// it would overflow, and names it as `what`.
ir::ValueId no_less_than(NodeContext& context, const BoundedInt& number, int64_t least, const char* what);
/// Reshape to a shape of which the numbers are not known.
void dynamic_reshape(NodeContext& context);
/// Whether Reshape to `shape`, of the model's numbers (0: as before, -1: the rest), leaves or joins those
/// axes of its input whose extents a run decides. A number for one of them holds in some runs alone.
bool reshape_keeps_counts(NodeContext& context, const ir::SymShape& shape);
/// Squeeze and Unsqueeze of axes that are not known.
void dynamic_squeeze(NodeContext& context);
void dynamic_unsqueeze(NodeContext& context);
/// Slice of which a run says some numbers.
void dynamic_slice(NodeContext& context);
/// Split into parts whose lengths are not known, even ones of an axis of the run, too.
void dynamic_split(NodeContext& context);
/// Lengths of parts of an axis of up to `extent` elements, of which `count` are there, i64 [n]. A run fails
/// in which one is less than 0, or they do not add up to the count.
ir::ValueId lengths_of_parts(NodeContext& context, ir::ValueId lengths, ir::ValueId count,
                             const ir::SymInt& extent);

/// Pad of axes that a run names.
void dynamic_pad(NodeContext& context);
/// The axis cut to its middle, or with zeros on both sides: of any extents, and any wanted one.
ir::ValueId centered(NodeContext& context, ir::ValueId x, int64_t axis, const ir::SymInt& wanted);
/// x and what goes on beside its elements along an axis as a Pad of this mode says, of which `before` (i64
/// [1]) stand in front of it and `behind` behind it: `total` in all.
ir::ValueId continued_along(NodeContext& context, ir::ValueId x, int64_t axis, ir::ValueId before,
                            ir::ValueId behind, const ir::SymInt& total, const std::string& mode);

/// A map [N,C,spatial...] cut, or with zeros behind it, along its spatial axes to the shape of operand
/// `index`, whose numbers a run works out. Throws ValueRequired as NodeContext::symbolic_ints does.
ir::ValueId map_in_run_shape(NodeContext& context, ir::ValueId map, size_t index);

/// x, but `low` where it is less and `high` where it is more than that.
ir::ValueId within(NodeContext& context, ir::ValueId x, ir::ValueId low, ir::ValueId high);

}  // namespace tensormill::frontend::onnx
