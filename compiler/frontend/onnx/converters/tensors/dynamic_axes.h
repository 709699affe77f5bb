/// Dynamic axes: those that a run names, and moves of elements by strides that it works out. Thread-safety:
/// as the context.
#pragma once

#include <optional>
#include <vector>

#include "compiler/frontend/onnx/extents/bounds.h"

namespace tensormill::frontend::onnx {

/// Which axes an operand of integers names, in a run alone.
struct NamedAxes {
  int64_t number = 0;               ///< of them
  ir::ValueId given = ir::kAbsent;  ///< as the operand has them, i64 [number]
  /// 1 where an axis is named, else 0, i64 [rank]; a run fails there in which one of them is none of the axes
  /// or stands twice
  ir::ValueId flags = ir::kAbsent;
  ir::ValueId places =
      ir::kAbsent;  ///< 1 where it is the one that is named there, else 0, i64 [rank, number]
  /// As i64 [1].
  ir::ValueId flag(NodeContext& context, int64_t axis) const;
  /// Of numbers (i64 [number]) for the named axes that of each axis, `otherwise` where it is not named: i64
  /// [rank].
  ir::ValueId by_axis(NodeContext& context, ir::ValueId numbers, int64_t otherwise) const;
};

/// Whether the integers of the operand are statically known, or follow from what is; none are known as none.
bool is_static(const NodeContext& context, size_t index);
/// The axes of `rank` ones that operand `index` names. Throws ValueRequired where data decides how many those
/// are, Error(kInvalidModel) where they are more than there are axes.
NamedAxes named_axes(NodeContext& context, size_t index, int64_t rank);
/// The same of a value, i64 [number].
NamedAxes axes_named_by(NodeContext& context, ir::ValueId numbers, int64_t rank);

/// An axis of a result of up to `most` elements, of which there are `count`; each is `stride` places of what
/// is read behind the one before. Both are i64 [1].
struct DynamicAxis {
  ir::SymInt most = 0;
  ir::ValueId count = ir::kAbsent;
  ir::ValueId stride = ir::kAbsent;
};

/// x with capacity for an element along each axis that has none, which is not there: so that there is
/// something to read where nothing is taken.
ir::ValueId with_capacity(NodeContext& context, ir::ValueId x);
/// Which places the elements of the axes are at, i64 of their largest extents.
ir::ValueId places_of(NodeContext& context, const std::vector<DynamicAxis>& axes);
/// The elements of x at `places` of it as it is stored, row by row at its largest extents; the axes get their
/// counts.
ir::ValueId taken_at(NodeContext& context, ir::ValueId x, ir::ValueId places,
                     const std::vector<DynamicAxis>& axes);
/// How many elements x, which is the first operand or of its shape, has along each axis, i64 [rank]; throws
/// ValueRequired where that is not statically known.
ir::ValueId dynamic_extents(NodeContext& context, ir::ValueId x);
/// x, of which `counts` (i64 [rank]) are there, without the named axes, of each of which it has the first
/// element.
ir::ValueId without_axes(NodeContext& context, ir::ValueId x, ir::ValueId counts, const NamedAxes& axes);
/// x with axes of extent 1 where they are named, of as many as it has then.
ir::ValueId with_axes(NodeContext& context, ir::ValueId x, const NamedAxes& axes);

}  // namespace tensormill::frontend::onnx
