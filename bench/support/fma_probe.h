/// The machine's peak of float32 fused multiply-add, to read other figures against: an unrolled loop of
/// independent FMA chains in registers, no memory, 512-bit vectors where the CPU has them, else 256-bit, else
/// what the compiler makes of plain C++.
/// Thread-safety: a measurement uses its own threads; two at once disturb each other's result.
#pragma once

namespace tensormill::bench {

/// Sum of GFLOP/s (2 operations per multiply-add) over `threads` threads that run together for about
/// `seconds`.
double fma_peak_gflops(int threads, double seconds);

/// Bits of the vectors that the probe uses here: 512, 256 or 0 for plain C++.
int fma_probe_bits();

}  // namespace tensormill::bench
