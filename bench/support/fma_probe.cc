#include "bench/support/fma_probe.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tensormill::bench {

namespace {

using Clock = std::chrono::steady_clock;

/// Chains that are in flight: latency 4 times two units a cycle needs 8; more hide a shared core's jitter.
constexpr int kChains = 16;
constexpr int64_t kStepsPerCall = 20000;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float chains_512(int64_t steps, float start) {
  __m512 acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = _mm512_set1_ps(start + static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999F);
  const __m512 b = _mm512_set1_ps(0.001F);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) acc[i] = _mm512_fmadd_ps(acc[i], a, b);
  }
  float sum = 0;
  for (int i = 0; i < kChains; ++i) {
    float lanes[16];
    _mm512_storeu_ps(lanes, acc[i]);
    for (float lane : lanes) sum += lane;
  }
  return sum;
}

__attribute__((target("avx2,fma"))) float chains_256(int64_t steps, float start) {
  constexpr int kFit = 12;  // of 16 registers
  __m256 acc[kFit];
  for (int i = 0; i < kFit; ++i) acc[i] = _mm256_set1_ps(start + static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999F);
  const __m256 b = _mm256_set1_ps(0.001F);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kFit; ++i) acc[i] = _mm256_fmadd_ps(acc[i], a, b);
  }
  float sum = 0;
  for (int i = 0; i < kFit; ++i) {
    float lanes[8];
    _mm256_storeu_ps(lanes, acc[i]);
    for (float lane : lanes) sum += lane;
  }
  return sum;
}
#endif

float chains_plain(int64_t steps, float start) {
  float acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = start + static_cast<float>(i);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) acc[i] = std::fma(acc[i], 0.999F, 0.001F);
  }
  float sum = 0;
  for (float value : acc) sum += value;
  return sum;
}

struct Probe {
  float (*run)(int64_t steps, float start);
  int bits;
  double flops_per_step;
};

Probe choose_probe() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {&chains_512, 512, 2.0 * 16 * kChains};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {&chains_256, 256, 2.0 * 8 * 12};
#endif
  return {&chains_plain, 0, 2.0 * kChains};
}

}  // namespace

int fma_probe_bits() { return choose_probe().bits; }

double fma_peak_gflops(int threads, double seconds) {
  const Probe probe = choose_probe();
  std::atomic<int> ready{0};
  std::vector<double> rates(static_cast<size_t>(threads));
  std::atomic<float> sink{0};  // what is never read would not be computed
  const auto work = [&](size_t index) {
    sink.store(probe.run(kStepsPerCall, 1.0F), std::memory_order_relaxed);
    ready.fetch_add(1);
    while (ready.load() < threads) {
    }
    const Clock::time_point start = Clock::now();
    int64_t calls = 0;
    std::chrono::duration<double> elapsed{};
    do {
      sink.store(probe.run(kStepsPerCall, static_cast<float>(calls % 8)), std::memory_order_relaxed);
      ++calls;
      elapsed = Clock::now() - start;
    } while (elapsed.count() < seconds);
    rates[index] = static_cast<double>(calls * kStepsPerCall) * probe.flops_per_step / elapsed.count() / 1e9;
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, static_cast<size_t>(i));
  work(0);
  for (std::thread& thread : others) thread.join();
  double sum = 0;
  for (double rate : rates) sum += rate;
  return sum;
}

}  // namespace tensormill::bench
