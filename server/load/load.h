/// Requests at times that are fixed beforehand, over a number of connections.
/// Thread-safety: run_load may run in several threads; what it is given is called from its own threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/json_fwd.h"

namespace tensormill::load {

using Nanoseconds = std::chrono::nanoseconds;

/// Throws Error(kInvalidArgument) for a load of no requests, or of more than 20 million.
void check_schedule(double rate, double seconds);
/// When requests are to be sent, from the start: `rate` a second for `seconds`, the first at 0.
std::vector<Nanoseconds> even_schedule(double rate, double seconds);
/// As many clients that know nothing of each other: gaps are exponential with the mean 1 / rate; equal seeds
/// give equal times.
std::vector<Nanoseconds> poisson_schedule(double rate, double seconds, uint64_t seed);

/// The time since the start, and a way to wait. The program's is the system's; tests have one of their own.
class Clock {
public:
  virtual ~Clock() = default;
  virtual Nanoseconds now() = 0;
  virtual void wait_until(Nanoseconds time) = 0;
};
std::unique_ptr<Clock> system_clock();

/// What came of a request: "" when it went well, else a word for it ("429", "timeout", "connection").
using Send = std::function<std::string()>;

struct LoadResult {
  std::vector<double> latency_ms;  ///< of those that went well: from when each was to be sent to its answer
  std::vector<double> service_ms;  ///< of the same: from when it was sent
  std::map<std::string, int64_t> failures;
  /// Sent more than a millisecond after their time: all connections were waiting, or this machine was busy.
  int64_t late = 0;
  double elapsed_s = 0;  ///< from the start to the last answer
};

/// One element of `connections` is called by one thread, one call after the other. With one connection all
/// happens on the caller's thread.
LoadResult run_load(const std::vector<Nanoseconds>& schedule, const std::vector<Send>& connections,
                    Clock& clock);

/// {requests, answered, failed: {word: count}, late, elapsed_s, rate: answers a second,
///  latency_ms: {mean, p50, p90, p95, p99, p99_9, max}, service_ms: the same}; times null without answers.
Json load_json(const LoadResult& result);

}  // namespace tensormill::load
