#include "server/metrics/latency_history.h"

#include <algorithm>
#include <cmath>

namespace tensormill::metrics {

namespace {

/// Each bucket ends at 2^(1/8) times the end of the one before: about 9 %.
constexpr double kBucketsPerOctave = 8;

int bucket_of(std::chrono::nanoseconds latency) {
  const auto ns = static_cast<double>(std::max<int64_t>(1, latency.count()));
  return static_cast<int>(std::ceil(kBucketsPerOctave * std::log2(ns)));
}

double end_of(int bucket) { return std::exp2(bucket / kBucketsPerOctave) / 1e6; }

int64_t minute_of(LatencyHistory::Clock::time_point now) {
  return std::chrono::duration_cast<std::chrono::minutes>(now.time_since_epoch()).count();
}

/// The end of the bucket in which the value of that rank is.
std::optional<double> percentile(const std::map<int, uint64_t>& buckets, uint64_t count, double part) {
  if (count == 0) return std::nullopt;
  const auto rank = static_cast<uint64_t>(std::ceil(part * static_cast<double>(count)));
  uint64_t seen = 0;
  for (const auto& [bucket, number] : buckets) {
    seen += number;
    if (seen >= rank) return end_of(bucket);
  }
  return end_of(buckets.rbegin()->first);
}

}  // namespace

LatencySpan LatencyHistory::summary(const std::map<int, uint64_t>& buckets, uint64_t failed) {
  LatencySpan span;
  for (const auto& [bucket, number] : buckets) span.answered += number;
  span.failed = failed;
  span.p50_ms = percentile(buckets, span.answered, 0.5);
  span.p95_ms = percentile(buckets, span.answered, 0.95);
  span.p99_ms = percentile(buckets, span.answered, 0.99);
  return span;
}

LatencyHistory::Minute& LatencyHistory::now_of(const std::string& name, Clock::time_point now) {
  const int64_t number = minute_of(now);
  Minute& minute = names_[name][static_cast<size_t>(number % kMinutes)];
  // A request that began before the minute turned may be told after one of the new minute: it counts there.
  if (minute.number < number) minute = Minute{number, {}, 0};
  return minute;
}

void LatencyHistory::answered(const std::string& name, Clock::time_point now,
                              std::chrono::nanoseconds latency) {
  const std::lock_guard lock(mutex_);
  ++now_of(name, now).buckets[bucket_of(latency)];
}

void LatencyHistory::failed(const std::string& name, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  ++now_of(name, now).failed;
}

LatencyHour LatencyHistory::hour(const std::string& name, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  LatencyHour hour;
  const int64_t present = minute_of(now);
  const auto found = names_.find(name);
  std::map<int, uint64_t> all;
  uint64_t failed = 0;
  for (int64_t number = present - kMinutes + 1; number <= present; ++number) {
    const Minute* minute = found == names_.end() || number < 0
                               ? nullptr
                               : &found->second[static_cast<size_t>(number % kMinutes)];
    if (minute == nullptr || minute->number != number) {
      hour.minutes.emplace_back();
      continue;
    }
    hour.minutes.push_back(summary(minute->buckets, minute->failed));
    for (const auto& [bucket, count] : minute->buckets) all[bucket] += count;
    failed += minute->failed;
  }
  hour.whole = summary(all, failed);
  return hour;
}

void LatencyHistory::forget(const std::string& name) {
  const std::lock_guard lock(mutex_);
  names_.erase(name);
}

}  // namespace tensormill::metrics
