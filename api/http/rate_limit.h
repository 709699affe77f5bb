/// How many requests a second a caller may make: a token bucket each (as in Turner, New directions in
/// communications, 1986), filled at the rate up to one second's worth.
/// Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace tensormill::http {

class RateLimiter {
public:
  using Clock = std::chrono::steady_clock;

  /// `rate` a second, for each caller; 0: no limit.
  explicit RateLimiter(int rate) : rate_(rate) {}
  /// Takes one token. Throws Error(kQuotaExceeded) naming the caller and the rate when there is none.
  /// Callers are names of keys, of which there are few; strangers must not get here.
  void take(const std::string& caller, Clock::time_point now);

private:
  struct Bucket {
    double tokens = 0;
    Clock::time_point filled;
  };
  const int rate_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace tensormill::http
