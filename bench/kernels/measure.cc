#include "bench/kernels/measure.h"

#include <algorithm>
#include <chrono>

#include "bench/support/fma_probe.h"
#include "bench/support/read_probe.h"
#include "runtime/base/median.h"

namespace tensormill::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Timing measure(LayerKernel& kernel, double flops, const MeasureOptions& options, parallel::Lease& lease) {
  parallel::KernelErrors errors;
  const parallel::KernelParallel parallel(lease, errors);
  kernel.run(parallel);
  const Clock::time_point warm = Clock::now();
  kernel.run(parallel);
  const double once = std::max(seconds_since(warm), 1e-7);
  const int calls = std::clamp(static_cast<int>(options.block_seconds / once), 1, 100000);
  std::vector<double> times, peaks, fractions;
  for (int block = 0; block < options.blocks; ++block) {
    const double peak = fma_peak_gflops(options.threads, options.block_seconds / 2);
    kernel.run(parallel);
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < calls; ++i) kernel.run(parallel);
    const double seconds = seconds_since(start) / calls;
    times.push_back(seconds);
    peaks.push_back(peak);
    fractions.push_back(flops / seconds / 1e9 / peak);
  }
  const double seconds = median(times);
  return {seconds * 1e6, flops / seconds / 1e9, median(peaks), median(fractions)};
}

double measure_read_fraction(LayerKernel& kernel, const MeasureOptions& options, parallel::Lease& lease) {
  parallel::KernelErrors errors;
  const parallel::KernelParallel parallel(lease, errors);
  const ReadProbe probe(static_cast<size_t>(kernel.bytes()));
  std::vector<double> fractions;
  for (int block = 0; block < options.blocks; ++block) {
    const double gbs = probe.gbs(options.block_seconds);
    kernel.run(parallel);
    int calls = 0;
    const Clock::time_point start = Clock::now();
    do {
      kernel.run(parallel);
      ++calls;
    } while (seconds_since(start) < options.block_seconds);
    fractions.push_back(kernel.bytes() * calls / seconds_since(start) / 1e9 / gbs);
  }
  return median(fractions);
}

}  // namespace tensormill::bench
