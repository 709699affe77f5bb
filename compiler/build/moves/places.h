/// Elements taken from places and put at places, as TensorFlow and TensorFlow Lite say these. Errors:
/// Error(kInvalidModel) for operands that do not fit. Thread-safety: as the builder.
#pragma once

#include "compiler/build/compose.h"

namespace tensormill::build {

/// The places i64 along an axis of its k largest elements, or its k smallest ones, in order; of equals the
/// first comes first.
ir::ValueId ordered_places(OpBuilder& builder, ir::ValueId x, int64_t axis, const ir::SymInt& k,
                           bool is_ascending);
/// x in a type of its order: bools and integers below 32 bits as i32.
ir::ValueId orderable(OpBuilder& builder, ir::ValueId x);

/// x[indices] along `axis`; the first `batch` axes of both go together.
ir::ValueId batched_gather(OpBuilder& builder, ir::ValueId x, ir::ValueId indices, int64_t axis,
                           int64_t batch);
/// Of indices [...,depth], of which each along the last axis is a place in an axis of `shape`, the place i64
/// [...] in these `axes` taken together, row-major. Behind the last one where one of them is negative or
/// outside of its axis: what is gathered from there, or scattered to it, fails the run, where another row
/// would be met.
ir::ValueId flat_places(OpBuilder& builder, ir::ValueId indices, const ir::SymShape& shape,
                        const std::vector<int64_t>& axes);
/// The last axis of the indices says a place along each of the first axes of x, as above.
ir::ValueId gather_nd(OpBuilder& builder, ir::ValueId x, ir::ValueId indices);

/// Rows [n,...] put at the places [n] of `filled` [rows,...]; `reduction`: none, add, mul, max, min.
ir::ValueId scattered(OpBuilder& builder, ir::ValueId filled, ir::ValueId places, ir::ValueId rows,
                      const char* reduction);
/// `updates` put into x at the places that the last axis of the indices says, as above.
ir::ValueId scatter_nd(OpBuilder& builder, ir::ValueId x, ir::ValueId indices, ir::ValueId updates,
                       const char* reduction);

/// Where the last two axes of a shape have the same place, `offset` columns to the right.
ir::ValueId on_diagonal(OpBuilder& builder, const ir::SymShape& shape, int64_t offset = 0);
/// The first lengths[i] elements along `time` of each row i of the batch turned round.
ir::ValueId reversed_sequences(OpBuilder& builder, ir::ValueId x, ir::ValueId lengths, int64_t time,
                               int64_t batch);

}  // namespace tensormill::build
