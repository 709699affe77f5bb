/// Steps that say how large an output is: "trim" of runtime/host_ops. Thread-safety: pure functions.
#pragma once

#include <optional>

#include "runtime/package/exec_plan.h"

namespace tensormill::package {

struct Trim {
  int32_t buffer = 0;  ///< of the result, whose shape holds the largest extent
  int32_t count = 0;   ///< of the i64 that is its extent
  size_t axis = 0;
};

/// Nothing for other steps. Throws Error(kInvalidPackage) for a step that is no valid one.
std::optional<Trim> trim_of(const ExecPlan& plan, const Step& step);

}  // namespace tensormill::package
