/// The steps of a plan that say whether it has room enough: host steps "take_first" of what grows, and the
/// ends of loops that stack what their iterations give. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/package/exec_plan.h"

namespace tensormill::package {

struct RoomCheck {
  size_t step = 0;
  int64_t extent = 0;  ///< how much there may be
  uint64_t rooms = 0;  ///< what that is made of, bit i for room i
  /// Which of the model's it is: the same in the package's other plans.
  std::string name;
};

/// In the order of the steps. Steps that cannot be run, as those of strangers' plans, are none.
std::vector<RoomCheck> room_checks_of(const ExecPlan& plan);

}  // namespace tensormill::package
