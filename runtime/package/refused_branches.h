/// Branches that a plan at some extents refuses: their guards do not hold there. Thread-safety: pure
/// functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/package/exec_plan.h"

namespace tensormill::package {

/// Notes in the steps of branches whose guards do not hold at the extents why that is, in the place of the
/// guards.
void note_refused(std::span<const int64_t> dims, ExecPlan& plan);

/// What the steps of refused branches alone read and make, and their launches: of the extents that are bound
/// they have none.
class RefusedBranches {
public:
  RefusedBranches() = default;  ///< none
  /// Those that note_refused has noted.
  explicit RefusedBranches(const ExecPlan& plan);

  bool has_step(int32_t step) const { return has(steps_, step); }
  bool has_buffer(int32_t buffer) const { return has(buffers_, buffer); }

private:
  static bool has(const std::vector<bool>& all, int32_t id) {
    return !all.empty() && all[static_cast<size_t>(id)];
  }

  std::vector<bool> steps_, buffers_;  ///< empty: none is refused
};

}  // namespace tensormill::package
