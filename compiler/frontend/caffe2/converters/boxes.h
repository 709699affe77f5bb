/// What operators on boxes have alike. Thread-safety: as the context.
#pragma once

#include "compiler/build/pictures/boxes.h"
#include "compiler/frontend/caffe2/node_context.h"

namespace tensormill::frontend::caffe2 {

/// How numbers move boxes: by argument legacy_plus_one, and the sizes no more than Caffe2 lets them grow.
build::BoxCoding coding_of(NodeContext& node);
/// Refuses boxes that are turned by an angle.
void refuse_rotated(NodeContext& node);
/// x without what is behind its point.
V whole(Compose& c, V x);
/// How often each of 0 to count - 1 is among the numbers x: i64 [count].
V how_often(Compose& c, V x, const ir::SymInt& count);
/// The sums in front of each element of a row.
V sums_before(NodeContext& node, V row);
/// The order i64 [n] of a row's elements, of equals as they stand.
V order_of(NodeContext& node, V row, bool is_ascending);

}  // namespace tensormill::frontend::caffe2
