/// Host steps "trim" (runtime/host_ops): they set the extents of an output whose buffer has the largest ones.
/// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "runtime/package/exec_plan.h"

namespace tensormill::package {

struct Trim {
  int32_t buffer = 0;        ///< of the result, whose shape holds the largest extents
  std::vector<size_t> axes;  ///< argument i + 1 of the step is the extent, an i64 [1], of the i-th of them
};

/// Nothing for a step that is no trim. Throws Error(kInvalidPackage) for a malformed one.
std::optional<Trim> trim_of(const ExecPlan& plan, const Step& step);

}  // namespace tensormill::package
