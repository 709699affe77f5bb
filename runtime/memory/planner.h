/// Where temporaries lie in one arena: best fit by liveness, in the manner of TensorFlow Lite's "greedy by
/// size" planner (Pisarchyk and Lee, 2020), with in-place reuse joined first. Deterministic: ties go to the
/// lower index.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tensormill::memory {

/// a + b and a × b of sizes; throws Error(kMemoryBudget) naming both when the result passes 2^62.
int64_t checked_add(int64_t a, int64_t b);
int64_t checked_mul(int64_t a, int64_t b);
/// `bytes` up to the next multiple of 64, plus 64 readable bytes.
int64_t padded_size(int64_t bytes);

/// A block that is needed from step `first` to step `last`, both inclusive.
struct BlockRequest {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
};

/// Block `target` may lie on the bytes of `source`, whose last use is the step in which `target` is first
/// used. Honoured when `target` fits into `source`.
struct ReuseHint {
  int32_t target = 0;
  int32_t source = 0;
};

/// What lies somewhere, and is needed from step `first` to step `last`, both inclusive.
struct PlacedBlock {
  int64_t offset = 0;  ///< bytes
  int64_t bytes = 0;   ///< padding included
  int64_t first = 0;
  int64_t last = 0;
};

struct BlockPlan {
  std::vector<int64_t> offsets;     ///< of each request, multiples of 64
  int64_t total_bytes = 0;          ///< the arena's size, padding included
  int64_t live_peak_bytes = 0;      ///< largest sum of live blocks at a step: the lower bound of total_bytes
  std::vector<PlacedBlock> placed;  ///< what the requests have, by offset; those that share it are one
};

/// `taken`: what lies in the same memory already, by offset; total_bytes is the end of what the requests get.
BlockPlan plan_blocks(const std::vector<BlockRequest>& requests, const std::vector<ReuseHint>& hints,
                      std::span<const PlacedBlock> taken = {});

}  // namespace tensormill::memory
