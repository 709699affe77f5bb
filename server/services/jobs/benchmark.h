/// Measuring packages end to end: a runner child on seeded inputs, while nothing else computes for jobs.
/// Thread-safety: as jobs::JobRunner.
#pragma once

#include <chrono>
#include <vector>

#include "api/services/package_service.h"
#include "runtime/base/json.h"
#include "runtime/parallel/thread_pool.h"
#include "server/jobs/job_runner.h"
#include "server/services/workers/work_desk.h"

namespace tensormill::server {

struct BenchmarkOptions {
  std::chrono::milliseconds timeout{1'800'000};
  uint64_t memory = uint64_t{8} << 30;
};

struct BenchmarkRequest {
  int repeat = 10;
  int number = 1;
  int threads = 1;
  bool profile = false;
  services::FillMode fill_mode = services::FillMode::kRandom;
  std::vector<int64_t> dims = {};  ///< of the free dims; none: the package's first ones
};

struct PackageTiming {
  std::vector<double> runs_ms;  ///< of each measurement, a run's part
  Json profile;                 ///< services::Timing::profile_json, where it was requested
};

/// Up to `threads` of the serving pool's cores, so that inference does not run on them meanwhile. Keeps the
/// job alive while it waits.
parallel::Lease lease_cores(parallel::ThreadPool& pool, int threads, jobs::JobContext& context);

/// `repeat` measurements of a package, whose metadata.json, mod.json, mod.so and mod.params `members` are.
/// Everything of other jobs stands still meanwhile.
PackageTiming benchmark_package(jobs::JobContext& context, parallel::ThreadPool& pool,
                                const std::vector<int>& members, const BenchmarkRequest& request,
                                const BenchmarkOptions& options);

/// {"runs_ms","mean_ms","median_ms","max_ms","min_ms","std_ms"}, as `tensormill run --print-time` has them.
Json summary_of(std::vector<double> runs);

/// The kind "benchmark".
class BenchmarkRunner final : public jobs::JobRunner {
public:
  BenchmarkRunner(WorkDesk& desk, parallel::ThreadPool& pool, BenchmarkOptions options)
      : desk_(desk), pool_(pool), options_(options) {}

  std::string kind() const override { return "benchmark"; }
  bool measures() const override { return true; }
  storage::JobFinish run(jobs::JobContext& context) override;

private:
  WorkDesk& desk_;
  parallel::ThreadPool& pool_;
  BenchmarkOptions options_;
};

}  // namespace tensormill::server
