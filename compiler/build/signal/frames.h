/// Frames of signals, which may lie on each other. Errors: UnsupportedForm for more than 1024 frames at one
/// place. Thread-safety: as the builder.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// Elements i * step to i * step + length of an axis, for each i for which they are there: the axis becomes
/// [frames, length].
ir::ValueId frames_of(OpBuilder& builder, ir::ValueId x, int64_t axis, const ir::SymInt& length,
                      int64_t step);

/// The reverse, of frames x [batch, frames, length]: each at its place, added up where they lie on each
/// other: [batch, (frames - 1) * step + length].
ir::ValueId added_frames(OpBuilder& builder, ir::ValueId x, int64_t step);

}  // namespace tensormill::build
