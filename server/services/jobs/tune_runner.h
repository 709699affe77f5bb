/// A tune job: a confined child searches and builds candidates, a measuring child beside it runs them, and
/// this side stores every trial before it is reported, compiles the model with what was found and measures it
/// against the model without. An attempt goes on from the records of the ones before.
/// Thread-safety: as jobs::JobRunner.
#pragma once

#include <memory>

#include "runtime/parallel/thread_pool.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/job_runner.h"
#include "server/services/jobs/benchmark.h"
#include "server/services/jobs/compile_steps.h"
#include "server/services/jobs/tune_bench.h"

namespace tensormill::server {

class TuneRunner final : public jobs::JobRunner {
public:
  /// `queue`: where workers elsewhere find what they are to measure.
  TuneRunner(const CompileTools& tools, parallel::ThreadPool& pool, BenchmarkOptions benchmark,
             jobs::JobQueue& queue)
      : tools_(tools), pool_(pool), benchmark_(benchmark), queue_(queue) {}

  std::string kind() const override { return "tune"; }
  bool measures() const override { return true; }
  bool is_elsewhere(const storage::JobRow& job) const override;
  storage::JobFinish run(jobs::JobContext& context) override;

private:
  std::unique_ptr<TuneBench> bench_of(jobs::JobContext& context, const Json& resolved, TuneFiles files);

  CompileTools tools_;
  parallel::ThreadPool& pool_;
  BenchmarkOptions benchmark_;
  jobs::JobQueue& queue_;
};

}  // namespace tensormill::server
