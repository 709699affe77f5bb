#include "server/load/load.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::load {

namespace {

constexpr double kNanoseconds = 1e9;
constexpr double kMaxRequests = 2e7;

class SystemClock final : public Clock {
public:
  Nanoseconds now() override { return std::chrono::steady_clock::now() - start_; }
  void wait_until(Nanoseconds time) override { std::this_thread::sleep_until(start_ + time); }

private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double ms(Nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

/// What one connection does: the next request that nobody has taken, at its time or as soon after as it can.
void work(const std::vector<Nanoseconds>& schedule, std::atomic<size_t>& next, const Send& send, Clock& clock,
          LoadResult& result) {
  constexpr Nanoseconds kLate = std::chrono::milliseconds(1);
  for (size_t i = next++; i < schedule.size(); i = next++) {
    clock.wait_until(schedule[i]);
    const Nanoseconds sent = clock.now();
    const std::string failure = send();
    const Nanoseconds done = clock.now();
    result.late += sent - schedule[i] > kLate;
    if (failure.empty()) {
      result.latency_ms.push_back(ms(done - schedule[i]));
      result.service_ms.push_back(ms(done - sent));
    } else {
      ++result.failures[failure];
    }
  }
}

Json times_of(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(times.size())));
    return times[std::clamp<size_t>(rank, 1, times.size()) - 1];
  };
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  return {{"mean", mean},    {"p50", at(0.5)},     {"p90", at(0.9)},     {"p95", at(0.95)},
          {"p99", at(0.99)}, {"p99_9", at(0.999)}, {"max", times.back()}};
}

}  // namespace

void check_schedule(double rate, double seconds) {
  if (rate <= 0 || seconds <= 0 || rate * seconds > kMaxRequests) {
    throw Error(ErrorCode::kInvalidArgument, std::to_string(rate) + " requests a second for " +
                                                 std::to_string(seconds) +
                                                 " s are none, or more than 20 million");
  }
}

std::vector<Nanoseconds> even_schedule(double rate, double seconds) {
  check_schedule(rate, seconds);
  const auto count = static_cast<size_t>(std::max(1.0, std::floor(rate * seconds)));
  std::vector<Nanoseconds> schedule;
  for (size_t i = 0; i < count; ++i)
    schedule.emplace_back(static_cast<int64_t>(static_cast<double>(i) / rate * kNanoseconds));
  return schedule;
}

std::vector<Nanoseconds> poisson_schedule(double rate, double seconds, uint64_t seed) {
  check_schedule(rate, seconds);
  std::mt19937_64 random(seed);
  std::vector<Nanoseconds> schedule = {Nanoseconds(0)};
  double time = 0;
  while (true) {
    // By the inverse of the distribution: the library's own may differ from one to the next.
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
    time += -std::log1p(-uniform) / rate;
    if (time >= seconds) return schedule;
    schedule.emplace_back(static_cast<int64_t>(time * kNanoseconds));
  }
}

std::unique_ptr<Clock> system_clock() { return std::make_unique<SystemClock>(); }

LoadResult run_load(const std::vector<Nanoseconds>& schedule, const std::vector<Send>& connections,
                    Clock& clock) {
  TM_CHECK(!connections.empty(), "a load over no connection");
  std::atomic<size_t> next{0};
  std::vector<LoadResult> parts(connections.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < connections.size(); ++i)
      threads.emplace_back([&, i] { work(schedule, next, connections[i], clock, parts[i]); });
    work(schedule, next, connections[0], clock, parts[0]);
  }
  LoadResult all;
  for (const LoadResult& part : parts) {
    all.latency_ms.insert(all.latency_ms.end(), part.latency_ms.begin(), part.latency_ms.end());
    all.service_ms.insert(all.service_ms.end(), part.service_ms.begin(), part.service_ms.end());
    for (const auto& [word, count] : part.failures) all.failures[word] += count;
    all.late += part.late;
  }
  all.elapsed_s = ms(clock.now()) / 1e3;
  return all;
}

Json load_json(const LoadResult& result) {
  const auto answered = static_cast<int64_t>(result.latency_ms.size());
  int64_t failed = 0;
  for (const auto& [word, count] : result.failures) failed += count;
  return {{"requests", answered + failed},
          {"answered", answered},
          {"failed", result.failures},
          {"late", result.late},
          {"elapsed_s", result.elapsed_s},
          {"rate", result.elapsed_s > 0 ? static_cast<double>(answered) / result.elapsed_s : 0.0},
          {"latency_ms", times_of(result.latency_ms)},
          {"service_ms", times_of(result.service_ms)}};
}

}  // namespace tensormill::load
