/// The limits of this machine's speed as a program meets them: multiply-adds of float32 in registers, and
/// bytes read from memory and from each core's L2 cache. A kernel does at most min(flops, intensity * bytes)
/// of each (Williams, Waterman, Patterson: Roofline, 2009). Thread-safety: a pure measurement; whoever calls
/// it sees to it that nothing else computes.
#pragma once

#include <cstddef>

namespace tensormill::measure {

/// Per second, of all threads together.
struct Roof {
  double flops = 0;         ///< a multiply-add is two
  double memory_bytes = 0;  ///< of more than the caches hold
  double l2_bytes = 0;
};

struct RoofOptions {
  int threads = 1;  ///< side by side, 1 or more
  int vector_bits =
      128;  ///< the widest vectors that the kernels use; narrower ones where the machine has no such
  size_t l2_bytes = 262144;  ///< of a core
};

/// The best of several rounds: others' work only makes a round slower.
Roof measure_roof(const RoofOptions& options);

}  // namespace tensormill::measure
