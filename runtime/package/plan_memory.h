/// Places every buffer of a plan that a run writes (inputs, outputs, temporaries) and the shared workspace of
/// its steps in one arena. Deterministic, so that the compiler can state the size in metadata.json.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/memory/planner.h"
#include "runtime/package/exec_plan.h"
#include "runtime/package/loops.h"

namespace tensormill::package {

struct MemoryPlan {
  /// Per buffer: offset in the arena, views included; -1 for constants, views of constants and buffers that
  /// no step, input or output touches.
  std::vector<int64_t> offsets;
  /// Per step: offset of its shared workspace, -1 when it has none.
  std::vector<int64_t> shared_workspace;
  int64_t arena_bytes = 0;             ///< size of the arena; metadata's arena_bytes
  int64_t live_peak_bytes = 0;         ///< lower bound of any placement
  int64_t worker_workspace_bytes = 0;  ///< stride for each worker: the largest of the steps, 64-byte aligned
  /// Per buffer: how many bytes there are where it lies; -1 for views and what has no place.
  std::vector<int64_t> capacities;
  /// By offset: what lies there while which steps run.
  std::vector<memory::PlacedBlock> blocks;
};

/// What is known where some steps of a plan are placed.
struct PlacedSteps {
  size_t begin = 0, end = 0;
  std::span<const Loop> loops;                      ///< of the plan
  std::span<const memory::PlacedBlock> taken = {};  ///< what lies in the same memory already, by offset
  std::span<const int64_t> capacities = {};         ///< per buffer: bytes that it gets if it has no more
};

/// `plan` is valid (validate_plan). Inputs stay untouched until the next set_input, so that a run can be
/// repeated; outputs live until the next run. Throws Error(kMemoryBudget) when the sum passes 2^62 bytes.
MemoryPlan plan_memory(const ExecPlan& plan);
/// The same of what the steps are the first to touch, and of their workspaces alone; inputs are of step 0. It
/// lives as the whole plan says.
MemoryPlan plan_memory(const ExecPlan& plan, const PlacedSteps& steps);

}  // namespace tensormill::package
