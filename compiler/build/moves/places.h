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
/// The last axis of the indices says a place along each of the first axes of x.
ir::ValueId gather_nd(OpBuilder& builder, ir::ValueId x, ir::ValueId indices);

/// Rows [n,...] put at the places [n] of `filled` [rows,...]; `reduction`: none, add, mul, max, min.
ir::ValueId scattered(OpBuilder& builder, ir::ValueId filled, ir::ValueId places, ir::ValueId rows,
                      const char* reduction);
/// `updates` put into x at the places that the last axis of the indices says.
ir::ValueId scatter_nd(OpBuilder& builder, ir::ValueId x, ir::ValueId indices, ir::ValueId updates,
                       const char* reduction);

/// Where the last two axes of a shape have the same place, `offset` columns to the right.
ir::ValueId on_diagonal(OpBuilder& builder, const ir::SymShape& shape, int64_t offset = 0);
/// The first lengths[i] elements along `time` of each row i of the batch turned round.
ir::ValueId reversed_sequences(OpBuilder& builder, ir::ValueId x, ir::ValueId lengths, int64_t time,
                               int64_t batch);

}  // namespace tensormill::build
