#include "server/report/times.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/median.h"

namespace tensormill::report {

std::vector<double> measure_times(const TimesOptions& options, const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < options.warmup; ++i) run();
  std::vector<double> times;
  for (int i = 0; i < options.repeat; ++i) {
    const Clock::time_point start = Clock::now();
    for (int k = 0; k < options.number; ++k) run();
    const std::chrono::duration<double, std::milli> elapsed = Clock::now() - start;
    times.push_back(elapsed.count() / options.number);
  }
  return times;
}

TimeSummary summarize(std::vector<double> times) {
  TM_CHECK(!times.empty(), "a summary of nothing");
  std::sort(times.begin(), times.end());
  TimeSummary summary;
  const double count = static_cast<double>(times.size());
  summary.mean = std::accumulate(times.begin(), times.end(), 0.0) / count;
  summary.median = median(times);
  summary.min = times.front();
  summary.max = times.back();
  for (double time : times) summary.std += (time - summary.mean) * (time - summary.mean) / count;
  summary.std = std::sqrt(summary.std);
  return summary;
}

double percentile(std::vector<double> times, double share) {
  TM_CHECK(!times.empty(), "a percentile of nothing");
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(times.size())));
  const size_t at = std::clamp<size_t>(rank, 1, times.size()) - 1;
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(at), times.end());
  return times[at];
}

Json times_json(const std::vector<double>& times) {
  const TimeSummary summary = summarize(times);
  return {{"mean_ms", summary.mean}, {"median_ms", summary.median}, {"max_ms", summary.max},
          {"min_ms", summary.min},   {"std_ms", summary.std},       {"runs_ms", times}};
}

}  // namespace tensormill::report
