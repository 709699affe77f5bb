/// Operators that move elements of maps, as TensorFlow and TensorFlow Lite have them. What is computed with
/// its channels first (channels_last.h) is moved there. Errors: Error(kInvalidModel) for operands that do not
/// fit. Thread-safety: as the builder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/build/maps/channels_last.h"

namespace tensormill::build {

/// Extents of which one may be -1: what is left of `from`.
ir::SymShape settled_shape(OpBuilder& builder, const ir::SymShape& from, ir::SymShape to);

/// Extents without those of the axes, which must be 1; where no axes are given, without all that are 1.
ir::SymShape squeezed_shape(OpBuilder& builder, const ir::SymShape& from,
                            const std::optional<std::vector<int64_t>>& axes);

/// A part of each axis.
struct Part {
  ir::SymShape starts, extents;
  ir::Ints steps;
};
ir::ValueId sliced(OpBuilder& builder, ChannelsLast& maps, ir::ValueId x, const Part& part);

/// `sizes` elements from `begins` on; -1: all that there are.
ir::ValueId sized_slice(OpBuilder& builder, ChannelsLast& maps, ir::ValueId x, const ir::SymShape& begins,
                        const ir::SymShape& sizes);

/// Entries begin:end:stride with their masks, a bit an entry.
struct StridedSliceSpec {
  ir::SymShape begin, end, strides;
  int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;
  bool offset = false;  ///< ends are relative to the begins
};
ir::ValueId strided_slice(OpBuilder& builder, ChannelsLast& maps, ir::ValueId x,
                          const StridedSliceSpec& spec);

/// Turned round along the axes.
ir::ValueId reversed(OpBuilder& builder, ChannelsLast& maps, ir::ValueId x, const std::vector<int64_t>& axes);

/// `paddings` [rank,2] around x: `value`, or what mirror_padded says.
ir::ValueId padded(OpBuilder& builder, ChannelsLast& maps, ir::ValueId x, const ir::SymShape& paddings,
                   double value);
/// The elements in front of the edge again, the edge itself with them where `is_symmetric` is set.
ir::ValueId mirror_padded(OpBuilder& builder, ir::ValueId x, const ir::SymShape& paddings, bool is_symmetric);

/// x in parts along an axis.
std::vector<ir::ValueId> split(OpBuilder& builder, ChannelsLast& maps, ir::ValueId x, int64_t axis,
                               const ir::SymShape& sizes);
/// Joined along an axis, which may be negative.
ir::ValueId concatenated(OpBuilder& builder, ChannelsLast& maps, std::vector<ir::ValueId> parts,
                         int64_t axis);
/// Reduced over axes in order; what `keeps` leaves has an extent of 1.
ir::ValueId reduced(OpBuilder& builder, ChannelsLast& maps, const char* op, ir::ValueId x,
                    const std::vector<int64_t>& axes, bool keeps);
/// `op` along the last axis, which is the channels' of a map.
ir::ValueId along_channels(OpBuilder& builder, ChannelsLast& maps, const char* op, ir::ValueId x);

}  // namespace tensormill::build
