#include "bench/support/read_probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "runtime/base/tensor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tensormill::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kUnit = 1024;  // bytes; divides into four streams of whole steps
constexpr int kStreams = 4;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float read_512(const float* data, size_t floats, size_t streams) {
  __m512 sums[kStreams] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                           _mm512_setzero_ps()};
  const size_t apart = floats / streams, step = streams == 1 ? kStreams * 16 : 16;
  const size_t next = streams == 1 ? 16 : apart;
  for (size_t i = 0; i < apart; i += step) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kStreams; ++s)
      sums[s] = _mm512_add_ps(sums[s], _mm512_load_ps(data + i + s * next));
  }
  float lanes[16];
  _mm512_storeu_ps(lanes, _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
  float sum = 0;
  for (float lane : lanes) sum += lane;
  return sum;
}
#endif

float read_plain(const float* data, size_t floats, size_t streams) {
  constexpr size_t kLanes = 16;
  float sums[kLanes] = {};
  const size_t apart = floats / streams;
  for (size_t i = 0; i < apart; i += kLanes) {
    for (size_t s = 0; s < streams; ++s) {
      for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += data[s * apart + i + lane];
    }
  }
  float sum = 0;
  for (float part : sums) sum += part;
  return sum;
}

auto choose_reader() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return &read_512;
#endif
  return &read_plain;
}

}  // namespace

ReadProbe::ReadProbe(size_t bytes)
    : floats_((bytes + kUnit - 1) / kUnit * kUnit / sizeof(float)),
      memory_(allocate_aligned(floats_ * sizeof(float))) {
  std::fill_n(static_cast<float*>(memory_.get()), floats_, 1.0F);
}

double ReadProbe::gbs(double seconds) const {
  const auto reader = choose_reader();
  const float* data = static_cast<const float*>(memory_.get());
  std::atomic<float> sink{0};  // what is never read would not be computed
  double best = 0;
  for (size_t streams : {size_t{1}, size_t{kStreams}}) {
    sink.store(reader(data, floats_, streams), std::memory_order_relaxed);
    const Clock::time_point start = Clock::now();
    double bytes = 0;
    std::chrono::duration<double> elapsed{};
    do {
      sink.store(reader(data, floats_, streams), std::memory_order_relaxed);
      bytes += static_cast<double>(floats_ * sizeof(float));
      elapsed = Clock::now() - start;
    } while (elapsed.count() < seconds / 2);
    best = std::max(best, bytes / elapsed.count() / 1e9);
  }
  return best;
}

}  // namespace tensormill::bench
