/// How workers share a kernel. Thread-safety: pure functions.
#pragma once

#include "compiler/te/stmt.h"
#include "runtime/package/exec_plan.h"

namespace tensormill::plan {

/// By what a lowered function stores outside of its parallel loops, and whether it has any.
package::Sharing sharing_of(const te::Function& function);

}  // namespace tensormill::plan
