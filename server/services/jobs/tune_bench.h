/// Where a tune job's candidates and packages run: this machine, or a worker elsewhere (remote_bench.h).
/// Thread-safety: belongs to the job's thread.
#pragma once

#include <memory>
#include <string>

#include "compiler/target/target.h"
#include "runtime/base/json.h"
#include "runtime/parallel/thread_pool.h"
#include "server/jobs/job_runner.h"
#include "server/measure/host.h"
#include "server/services/jobs/benchmark.h"
#include "server/services/jobs/compile_steps.h"

namespace tensormill::server {

class TuneBench {
public:
  virtual ~TuneBench() = default;
  /// What the records that are made here hold for, as tune::Record::cpu.
  virtual const std::string& cpu() = 0;
  /// Whether candidates that were built together are better run together.
  virtual bool takes_batches() const = 0;
  /// MeasureHost's answers to the requests, in their order, about the two memory files of measure::Exchange.
  virtual Json measure(const Json& requests, double timeout_seconds) = 0;
  /// The machine's limits (MeasureHost::measure_roof); null when they could not be measured.
  virtual Json roof(const target::Target& target) = 0;
  virtual PackageTiming benchmark(const PackageFiles& package, const BenchmarkRequest& request) = 0;
};

/// Its memory files; both are borrowed.
struct TuneFiles {
  int code = -1;
  int tensors = -1;
};

/// This machine, whose other jobs stand still while something is measured.
class LocalBench final : public TuneBench {
public:
  LocalBench(const CompileTools& tools, parallel::ThreadPool& pool, jobs::JobContext& context,
             const BenchmarkOptions& options, TuneFiles files, int threads)
      : tools_(tools),
        pool_(pool),
        context_(context),
        options_(options),
        threads_(threads),
        host_({.memory = tools.options.memory, .policy = tools.options.policy}, files.code, files.tensors) {}

  const std::string& cpu() override { return tools_.records.cpu(); }
  bool takes_batches() const override { return false; }
  Json measure(const Json& requests, double timeout_seconds) override;
  Json roof(const target::Target& target) override;
  PackageTiming benchmark(const PackageFiles& package, const BenchmarkRequest& request) override;

private:
  const CompileTools& tools_;
  parallel::ThreadPool& pool_;
  jobs::JobContext& context_;
  const BenchmarkOptions& options_;
  const int threads_;
  measure::MeasureHost host_;
};

/// Of a package, in the order of package::kMembers.
std::vector<int> descriptors_of(const PackageFiles& package);

}  // namespace tensormill::server
