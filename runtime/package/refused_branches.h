/// Branches that cannot run at the extents that a plan is bound to, because their guards do not hold there.
/// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/package/exec_plan.h"

namespace tensormill::package {

/// Replaces the guards of each branch step by the text of one that does not hold at `dims`, if there is one
/// (attribute refused, branches.h).
void note_refused(std::span<const int64_t> dims, ExecPlan& plan);

/// The steps of refused branches, and the buffers that they alone read or write: their extents and launch
/// sizes are not evaluated.
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
