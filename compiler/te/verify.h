/// Checks of loop IR: types, definitions before uses, indices in bounds (interval analysis with loop ranges, guards
/// and masks), no two iterations of a parallel loop that touch one element with a write, no address that depends on
/// tensor data except through check_index, and the form that `level` demands.
/// Thread-safety: pure functions.
#pragma once

#include "compiler/te/stmt.h"

namespace tensormill::te {

/// Throws InternalError naming the statement.
void verify(const Function& function, Level level);

}  // namespace tensormill::te
