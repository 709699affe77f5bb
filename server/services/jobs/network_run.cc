#include "server/services/jobs/network_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/json.h"

namespace tensormill::server {

namespace {

constexpr double kShortestMs = 20;  // of a sample
constexpr double kMostRuns = 1000;

}  // namespace

int runs_of_a_sample(double run_ms) {
  return static_cast<int>(std::clamp(kShortestMs / std::max(run_ms, 1e-3), 1.0, kMostRuns));
}

tune::NetworkRun network_run(const std::vector<double>& runs_ms, const Json& profile,
                             const package::Metadata& metadata) {
  std::map<std::string, std::string> keys;
  for (const package::KernelInfo& kernel : metadata.kernels) keys.emplace(kernel.symbol, kernel.task_key);
  tune::NetworkRun run;
  for (const double ms : runs_ms) run.seconds.push_back(ms * 1e-3);
  for (const Json& step : profile) {
    const auto key = keys.find(step.at("function").get<std::string>());
    if (key == keys.end()) continue;
    tune::KernelTime& time = run.kernels[key->second];
    ++time.calls;
    time.seconds += step.at("duration_us").get<double>() * 1e-6;
  }
  return run;
}

tune::NetworkRounds rounds_of(int rounds, const std::vector<std::vector<int64_t>>& extents,
                              const std::function<double(const std::vector<int64_t>& dims)>& first_run_ms,
                              const RunAt& run) {
  std::vector<int> numbers;
  for (const std::vector<int64_t>& dims : extents) numbers.push_back(runs_of_a_sample(first_run_ms(dims)));
  tune::NetworkRounds done;
  for (int round = 0; round < rounds; ++round) {
    std::vector<tune::NetworkRun> untuned, tuned;
    for (size_t i = 0; i < extents.size(); ++i) {
      untuned.push_back(run(round, false, extents[i], numbers[i]));
      tuned.push_back(run(round, true, extents[i], numbers[i]));
    }
    done.untuned.push_back(tune::mean_run(std::move(untuned)));
    done.tuned.push_back(tune::mean_run(std::move(tuned)));
  }
  return done;
}

}  // namespace tensormill::server
