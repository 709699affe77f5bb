/// Times of runs as `tensormill run` takes and sums them up.
/// Thread-safety: pure functions; an executor belongs to one thread.
#pragma once

#include <functional>
#include <vector>

#include "runtime/base/json_fwd.h"

namespace tensormill::report {

struct TimesOptions {
  int warmup = 1;  ///< runs before the first measurement
  int repeat = 1;  ///< measurements
  int number = 1;  ///< runs in each
};

/// Milliseconds of one call of `run`, a value for each measurement.
std::vector<double> measure_times(const TimesOptions& options, const std::function<void()>& run);

struct TimeSummary {
  double mean = 0, median = 0, max = 0, min = 0, std = 0;
};
/// Of at least one value.
TimeSummary summarize(std::vector<double> times);
/// The value below which `share` of them lie, by the nearest rank: 0.95 of 20 is the 19th.
double percentile(std::vector<double> times, double share);
/// The report of `run --json`.
Json times_json(const std::vector<double>& times);

}  // namespace tensormill::report
