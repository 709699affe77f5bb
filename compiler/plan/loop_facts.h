/// What the loops of generic kernels depend on of the CPU. Thread-safety: values.
#pragma once

#include <cstdint>

namespace tensormill::plan {

struct LoopFacts {
  int lanes = 1;  ///< 32-bit elements of a vector
  int64_t l2_bytes = int64_t{1} << 20;
  int cores = 1;
};

}  // namespace tensormill::plan
