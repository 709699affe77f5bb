/// Results as long as a run decides: held at the largest extent that shapes allow, with a count. What is
/// computed from them element by element is as long; whoever finishes the graph trims its outputs.
/// Thread-safety: as the graph.
#pragma once

#include <set>
#include <span>
#include <string_view>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// Which values of a graph that is being made are so. A converter that asks for a shape gets the largest one,
/// which is wrong where the shape itself is the result: such operators do not take these values.
class CountedValues {
public:
  void add(ir::ValueId value) { values_.insert(value); }
  bool contains(ir::ValueId value) const { return values_.contains(value); }
  bool empty() const { return values_.empty(); }

private:
  std::set<ir::ValueId> values_;
};

/// The places i64 [n,rank] of the elements of x, of rank 1 or more, that are not zero, in row-major order.
ir::ValueId places_of_nonzero(OpBuilder& builder, ir::ValueId x, CountedValues& counted);

/// The same, with an extent that a run binds.
ir::ValueId places_of_nonzero(OpBuilder& builder, ir::ValueId x);

/// The distinct slices of x along an axis in the order in which they come, which of them each slice is, and
/// how often each is there: i64.
struct DistinctSlices {
  ir::ValueId values, which, how_often;
};
DistinctSlices distinct_slices(OpBuilder& builder, ir::ValueId x, int64_t axis, CountedValues& counted);
/// The same, with extents that a run binds.
DistinctSlices distinct_slices(OpBuilder& builder, ir::ValueId x, int64_t axis);

/// The first `count`, a scalar or [1] of integers, elements of x along its first axis.
ir::ValueId first_elements(OpBuilder& builder, ir::ValueId x, ir::ValueId count, CountedValues& counted);

/// Boxes that stay when those that overlap better ones are dropped: their places i32 [most], their scores f32
/// [most], zeros behind as many as count, i32 [], says. boxes [n,4], scores [n]; `overlap`, `score` and
/// `sigma`, which may be kAbsent, are scalars.
struct KeptBoxes {
  ir::ValueId places, scores, count;
};
KeptBoxes suppressed_boxes(OpBuilder& builder, ir::ValueId boxes, ir::ValueId scores, const ir::SymInt& most,
                           ir::ValueId overlap, ir::ValueId score, ir::ValueId sigma);

}  // namespace tensormill::build
