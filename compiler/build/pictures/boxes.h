/// Boxes of detectors: laid over a map, moved by what a network says, and those of them that stay. A box is
/// four numbers along the last axis, its corners x1, y1, x2, y2, unless something else is said. Errors:
/// Error(kInvalidModel) for operands that do not fit. Thread-safety: as the builder.
#pragma once

#include <array>
#include <limits>
#include <optional>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// Boxes a result has room for, at most.
inline constexpr int64_t kMostResultBoxes = 1 << 16;

/// [...,4] of centers and sizes x, y, width, height; and the other way.
ir::ValueId corners_of(OpBuilder& builder, ir::ValueId centered);
ir::ValueId centers_of(OpBuilder& builder, ir::ValueId corners);

/// How much boxes are moved: by so many of their sizes, and these by a logarithm.
struct BoxCoding {
  std::array<double, 4> scales = {1, 1, 1, 1};  ///< of the numbers
  double most_log = std::numeric_limits<double>::infinity();
  double added = 0;  ///< to what lies between two corners, for the size: 1 where corners are places of pixels
};
/// Boxes [...,4] moved by `deltas` [...,4], which broadcast.
ir::ValueId moved_boxes(OpBuilder& builder, ir::ValueId boxes, ir::ValueId deltas, const BoxCoding& coding);
/// Each side within [0, its limit]; the limits broadcast with one number a box [...,1].
ir::ValueId clipped_boxes(OpBuilder& builder, ir::ValueId boxes, ir::ValueId width, ir::ValueId height);

/// Boxes [n,4] at each place of a map, `stride` apart: [rows*columns*n,4], those of one place together.
ir::ValueId boxes_over(OpBuilder& builder, ir::ValueId boxes, const ir::SymInt& rows,
                       const ir::SymInt& columns, double stride);
/// A map [N,n*numbers,H,W] in the same order: [N,H*W*n,numbers].
ir::ValueId numbers_over(OpBuilder& builder, ir::ValueId map, int64_t numbers);

/// Of each row the boxes that stay when those that overlap better ones are dropped.
struct BoxRows {
  ir::ValueId boxes = ir::kAbsent;   ///< [rows,n,4]
  ir::ValueId scores = ir::kAbsent;  ///< [rows,n]; minus infinity is none
  ir::ValueId groups = ir::kAbsent;  ///< integer [rows,n]: a box goes for a better one of its group alone
  double overlap = 0.5;              ///< the part of their union from which on the worse one goes
  double added = 0;                  ///< as of BoxCoding
  std::optional<int64_t> most = std::nullopt;  ///< of a row
};
/// bool [rows,n].
ir::ValueId kept_boxes(OpBuilder& builder, const BoxRows& rows);
/// The least overlap that is above a limit of float32.
double above_overlap(double limit);

/// The places i64 [rows,k] of the elements of bool [rows,n] that are true, in order; the others behind them.
ir::ValueId true_first(OpBuilder& builder, ir::ValueId holds, const ir::SymInt& k);
/// How many are true: i64 [rows,1].
ir::ValueId true_count(OpBuilder& builder, ir::ValueId holds);

}  // namespace tensormill::build
