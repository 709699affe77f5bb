/// Results with data-dependent extents: symbols that a run binds (run_numbers.h), with what shapes allow as
/// their upper bounds. Thread-safety: as the graph.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// The places i64 [n,rank] of the elements of x that are not zero, in row-major order; of a scalar [0,0] or
/// [1,0].
ir::ValueId places_of_nonzero(OpBuilder& builder, ir::ValueId x);

/// The distinct slices of x along an axis in the order in which they come, or in rising order, which of them
/// each slice is, and how often each is there: i64. No NaN equals another one.
struct DistinctSlices {
  ir::ValueId values, which, how_often;
};
DistinctSlices distinct_slices(OpBuilder& builder, ir::ValueId x, int64_t axis, bool is_sorted = false);

/// Boxes that stay when those that overlap better ones are dropped: their places i32 [most], their scores f32
/// [most], zeros behind as many as count, i32 [], says. boxes [n,4], scores [n]; `overlap`, `score` and
/// `sigma`, which may be kAbsent, are scalars.
struct KeptBoxes {
  ir::ValueId places, scores, count;
};
KeptBoxes suppressed_boxes(OpBuilder& builder, ir::ValueId boxes, ir::ValueId scores, const ir::SymInt& most,
                           ir::ValueId overlap, ir::ValueId score, ir::ValueId sigma);

}  // namespace tensormill::build
