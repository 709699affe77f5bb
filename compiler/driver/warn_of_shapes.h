/// What users are told of shapes that their package has no kernels for. Thread-safety: pure functions.
#pragma once

#include <string>

#include "runtime/package/plan_set.h"

namespace tensormill::driver {

/// "" where there are none, or few that no dim alone decides about. `refused`: why plans were not made, or
/// "".
std::string warn_of_shapes(const package::PlanSet& set, const std::string& refused);

}  // namespace tensormill::driver
