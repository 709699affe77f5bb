#include "bench/kernels/measure.h"

#include <algorithm>
#include <chrono>

#include "bench/support/fma_probe.h"

namespace tensormill::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Timing measure(LayerKernel& kernel, double flops, const MeasureOptions& options, parallel::Lease& lease) {
  const parallel::KernelParallel parallel(lease);
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

double read_bandwidth_gbs() {
  typedef float Vector __attribute__((vector_size(64)));
  constexpr size_t kBytes = size_t{64} << 20;
  constexpr size_t kChains = 4;
  const std::shared_ptr<void> memory = allocate_aligned(kBytes);
  std::fill_n(static_cast<float*>(memory.get()), kBytes / sizeof(float), 1.0f);
  const Vector* data = static_cast<const Vector*>(memory.get());
  std::vector<double> rates;
  Vector sink = {};
  for (int block = 0; block < 5; ++block) {
    const Clock::time_point start = Clock::now();
    Vector sums[kChains] = {};
    for (size_t i = 0; i < kBytes / sizeof(Vector); i += kChains) {
      for (size_t chain = 0; chain < kChains; ++chain) sums[chain] += data[i + chain];
    }
    for (const Vector& sum : sums) sink += sum;
    rates.push_back(static_cast<double>(kBytes) / seconds_since(start) / 1e9);
  }
  return sink[0] > 0 ? median(rates) : 0;
}

}  // namespace tensormill::bench
