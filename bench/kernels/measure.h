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
/// Of a kernel that reads its operands once, on one thread: bytes a second ÷ those of plain reads of as many
/// bytes, block by block in turn; the median.
double measure_read_fraction(LayerKernel& kernel, const MeasureOptions& options, parallel::Lease& lease);

}  // namespace tensormill::bench
