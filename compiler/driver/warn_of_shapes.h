/// What users read of shapes that their package has no kernels for, or does not take. Thread-safety: pure
/// functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/package/plan_set.h"

namespace tensormill::driver {

/// "" where there are none, or few that no dim alone decides about. A free dim of which the model takes one
/// extent alone is named with it. `refused`: why plans were not made, or "". `conditions`: what has to hold
/// of shapes with a plan; of many, or long ones, there is the number of some instead.
std::string warn_of_shapes(const package::PlanSet& set, const std::string& refused,
                           const std::vector<std::string>& conditions);

}  // namespace tensormill::driver
