/// Checks of loop IR: definitions before uses, indices in bounds (interval analysis with loop ranges, guards
/// and masks), no address that depends on tensor data except through check_index, buffers of a worker used by
/// one task, and the form that `level` demands. At kLoops, where schedules make their loops: no two
/// iterations of a parallel loop that touch one element with a write. From kFlat on: workspace buffers that
/// live together do not overlap; accesses of buffers with symbolic extents are not checked again.
/// Thread-safety: pure functions.
#pragma once

#include "compiler/te/stmt.h"

namespace tensormill::te {

/// Throws InternalError naming the statement.
void verify(const Function& function, Level level);

}  // namespace tensormill::te
