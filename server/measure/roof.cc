#include "server/measure/roof.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tensormill::measure {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kChains = 12;  // independent sums: more than latency times width of any core's multiply-adds
constexpr int kRounds = 7;
constexpr int kMemoryRounds = 16;                   // each reads another part of memory
constexpr int64_t kAdds = 200000;                   // of each chain in a round: about a millisecond
constexpr size_t kMemoryBytes = size_t{256} << 20;  // of all threads: more than caches hold
constexpr size_t kOwnBytes = size_t{16} << 20;      // of a thread at least
constexpr size_t kCachedRead = size_t{64} << 20;    // what a thread reads of its cache in a round
constexpr float kFactor = 0.999F;
constexpr float kTerm = 0.001F;  // sums stay near 1: no infinity, no number that is slow

/// Both return something made of all that was computed, so that it is.
struct Loops {
  float (*multiply_add)(int64_t rounds);
  int64_t (*read)(const char* data, size_t bytes);  ///< a multiple of 512 bytes
  int lanes;
};

using Four = float __attribute__((vector_size(16)));
using Words = int64_t __attribute__((vector_size(16)));

float multiply_add_any(int64_t rounds) {
  Four sums[kChains];
  for (Four& sum : sums) sum = Four{1, 1, 1, 1};
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (Four& sum : sums) sum = sum * kFactor + kTerm;
  }
  for (int k = 1; k < kChains; ++k) sums[0] += sums[k];
  return sums[0][0];
}

int64_t read_any(const char* data, size_t bytes) {
  Words sums[4] = {};
  for (size_t at = 0; at < bytes; at += 64) {
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) {
      Words part;
      std::memcpy(&part, data + at + 16 * k, sizeof(part));
      sums[k] += part;
    }
  }
  return sums[0][0] + sums[1][0] + sums[2][0] + sums[3][0];
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] float multiply_add_256(int64_t rounds) {
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = _mm256_set1_ps(1);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, _mm256_set1_ps(kFactor), _mm256_set1_ps(kTerm));
  }
  for (int k = 1; k < kChains; ++k) sums[0] = _mm256_add_ps(sums[0], sums[k]);
  return _mm256_cvtss_f32(sums[0]);
}

[[gnu::target("avx2")]] int64_t read_256(const char* data, size_t bytes) {
  __m256i sums[8] = {};
  for (size_t at = 0; at < bytes; at += 256) {
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k) {
      const auto* from = reinterpret_cast<const __m256i*>(data + at + 32 * k);
      sums[k] = _mm256_add_epi64(sums[k], _mm256_loadu_si256(from));
    }
  }
  for (int k = 1; k < 8; ++k) sums[0] = _mm256_add_epi64(sums[0], sums[k]);
  return _mm256_extract_epi64(sums[0], 0);
}

[[gnu::target("avx512f")]] float multiply_add_512(int64_t rounds) {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, _mm512_set1_ps(kFactor), _mm512_set1_ps(kTerm));
  }
  for (int k = 1; k < kChains; ++k) sums[0] = _mm512_add_ps(sums[0], sums[k]);
  return _mm512_cvtss_f32(sums[0]);
}

[[gnu::target("avx512f")]] int64_t read_512(const char* data, size_t bytes) {
  __m512i sums[8];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (size_t at = 0; at < bytes; at += 512) {
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k)
      sums[k] = _mm512_add_epi64(sums[k], _mm512_loadu_si512(data + at + 64 * k));
  }
  for (int k = 1; k < 8; ++k) sums[0] = _mm512_add_epi64(sums[0], sums[k]);
  alignas(64) int64_t words[8];
  _mm512_store_si512(words, sums[0]);
  return words[0];
}
#endif

Loops loops_for([[maybe_unused]] int vector_bits) {
#if defined(__x86_64__)
  if (vector_bits >= 512 && __builtin_cpu_supports("avx512f")) return {multiply_add_512, read_512, 16};
  if (vector_bits >= 256 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {multiply_add_256, read_256, 8};
#endif
  return {multiply_add_any, read_any, 4};
}

/// What all threads together do of `work` in a second, in the best of the rounds; `amount` is one thread's.
double rate(int threads, int rounds, double amount, const std::function<void(int, int)>& work) {
  std::barrier<> line(threads);
  std::vector<double> seconds(static_cast<size_t>(threads) * static_cast<size_t>(rounds));
  const auto run = [&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      line.arrive_and_wait();
      const Clock::time_point begin = Clock::now();
      work(thread, round);
      seconds[static_cast<size_t>(round) * static_cast<size_t>(threads) + static_cast<size_t>(thread)] =
          std::chrono::duration<double>(Clock::now() - begin).count();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
    run(0);
  }
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto first = seconds.begin() + static_cast<std::ptrdiff_t>(round) * threads;
    best = std::max(best, amount * threads / std::max(*std::max_element(first, first + threads), 1e-9));
  }
  return best;
}

}  // namespace

Roof measure_roof(const RoofOptions& options) {
  const int threads = std::max(options.threads, 1);
  const Loops loops = loops_for(options.vector_bits);
  std::atomic<int64_t> kept = 0;
  Roof roof;
  roof.flops = rate(threads, kRounds, 2.0 * static_cast<double>(kAdds) * kChains * loops.lanes,
                    [&](int, int) { kept += static_cast<int64_t>(loops.multiply_add(kAdds)); });
  // Whole steps of every loop.
  const size_t own = std::max(kMemoryBytes / static_cast<size_t>(threads) / 65536 * 65536, kOwnBytes);
  const std::vector<char> memory(own * static_cast<size_t>(threads), 1);
  const auto part = [&](int thread) { return memory.data() + own * static_cast<size_t>(thread); };
  // The second half was written last: it may still be in a cache.
  const size_t step = own / 2 / kMemoryRounds;
  roof.memory_bytes = rate(threads, kMemoryRounds, static_cast<double>(step), [&](int thread, int round) {
    kept += loops.read(part(thread) + step * static_cast<size_t>(round), step);
  });
  const size_t cached = std::clamp<size_t>(options.l2_bytes / 2 / 4096 * 4096, 4096, own);
  const size_t times = std::max<size_t>(kCachedRead / cached, 1);
  roof.l2_bytes = rate(threads, kRounds, static_cast<double>(cached * times), [&](int thread, int) {
    for (size_t i = 0; i < times; ++i) kept += loops.read(part(thread), cached);
  });
  return roof;
}

}  // namespace tensormill::measure
