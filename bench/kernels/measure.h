/// Times a kernel against the machine's FMA peak, block by block. Thread-safety: one measurement at a time.
#pragma once

#include "bench/kernels/layer_kernel.h"

namespace tensormill::bench {

struct Timing {
  double microseconds = 0;   ///< one call, median of the blocks
  double gflops = 0;         ///< at that time
  double peak_gflops = 0;    ///< the probe's, median of the blocks
  double peak_fraction = 0;  ///< median over blocks of the kernel's rate ÷ the probe's beside it
};

struct MeasureOptions {
  int threads = 1;
  int blocks = 7;
  double block_seconds = 0.012;
};

/// Blocks of calls and blocks of the probe in turn.
Timing measure(LayerKernel& kernel, double flops, const MeasureOptions& options, parallel::Lease& lease);
/// GB/s that one thread reads from a buffer much larger than its L2 cache.
double read_bandwidth_gbs();

}  // namespace tensormill::bench
