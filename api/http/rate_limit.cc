#include "api/http/rate_limit.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::http {

void RateLimiter::take(const std::string& caller, Clock::time_point now) {
  if (rate_ == 0) return;
  const auto rate = static_cast<double>(rate_);
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = buckets_.try_emplace(caller, Bucket{rate, now});
  Bucket& bucket = entry->second;
  const std::chrono::duration<double> passed = now - bucket.filled;
  bucket.tokens = std::min(rate, bucket.tokens + std::max(0.0, passed.count()) * rate);
  bucket.filled = now;
  if (bucket.tokens < 1) {
    throw Error(ErrorCode::kQuotaExceeded, "key " + caller + " has made its " + std::to_string(rate_) +
                                               " requests a second, which is limits.requests_per_second");
  }
  bucket.tokens -= 1;
}

}  // namespace tensormill::http
