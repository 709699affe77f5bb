/// Latencies of the last hour by name and minute, in memory: enough for percentiles, without a database.
/// Thread-safety: all methods from many threads.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tensormill::metrics {

struct LatencySpan {
  uint64_t answered = 0;
  uint64_t failed = 0;
  std::optional<double> p50_ms;  ///< none without an answer; up to 9 % above what was measured
  std::optional<double> p95_ms;
  std::optional<double> p99_ms;
};

struct LatencyHour {
  LatencySpan whole;
  std::vector<LatencySpan> minutes;  ///< 60, the present one last
};

/// Times are of one clock that never goes back. Names are the caller's to bound.
class LatencyHistory {
public:
  using Clock = std::chrono::steady_clock;

  void answered(const std::string& name, Clock::time_point now, std::chrono::nanoseconds latency);
  void failed(const std::string& name, Clock::time_point now);
  LatencyHour hour(const std::string& name, Clock::time_point now);
  void forget(const std::string& name);

private:
  static constexpr int64_t kMinutes = 60;

  /// What came in a minute: how many latencies lie in each bucket of a logarithmic scale.
  struct Minute {
    int64_t number = -1;  ///< since the clock's beginning; -1: none yet
    std::map<int, uint64_t> buckets;
    uint64_t failed = 0;
  };
  using Minutes = std::array<Minute, kMinutes>;

  static LatencySpan summary(const std::map<int, uint64_t>& buckets, uint64_t failed);
  /// The present minute of a name, emptied if it was that of an hour ago.
  Minute& now_of(const std::string& name, Clock::time_point now);

  std::mutex mutex_;
  std::map<std::string, Minutes> names_;
};

}  // namespace tensormill::metrics
