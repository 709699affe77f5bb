/// Statistics of a package whose runs are another process's, from what their answers say.
/// Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>

#include "api/services/deployment_service.h"

namespace tensormill::server {

class RunTotals {
public:
  void set_memory(int64_t bytes);
  /// A request of `rows` rows, which took `spent` in all.
  void answered(const services::RunResult& result, int64_t rows, std::chrono::nanoseconds spent);
  void failed(std::chrono::nanoseconds spent);
  services::InferStatistics statistics() const;

private:
  /// Of the runs of one number of rows. Each request adds its part of the run, so the sum over those that
  /// shared one is 1.
  struct Runs {
    double count = 0;
    double compute_ns = 0;
    double other_ns = 0;
  };

  mutable std::mutex mutex_;
  services::InferStatistics totals_;
  std::map<int64_t, Runs> runs_;
};

}  // namespace tensormill::server
