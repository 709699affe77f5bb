/// The kind "report": each configuration is compiled and tried on a set of inputs, one after the other, in
/// confined children. A row is an event of the job (report_document.h) as soon as it is made. What a report
/// may cost is bounded: by the number of configurations, by what a compilation and a run may take of time and
/// memory, and by a time of the whole, past which the remaining rows say so. Packages are not published: a
/// compile job of the same form makes the same bytes. Thread-safety: as jobs::JobRunner.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "compiler/target/target.h"
#include "runtime/parallel/thread_pool.h"
#include "server/jobs/job_runner.h"
#include "server/services/jobs/benchmark.h"
#include "server/services/jobs/compile_steps.h"

namespace tensormill::server {

class ReportRunner final : public jobs::JobRunner {
public:
  ReportRunner(CompileWork work, parallel::ThreadPool& pool, BenchmarkOptions options, target::Target host)
      : work_(std::move(work)), pool_(pool), options_(options), host_(std::move(host)) {}

  std::string kind() const override { return "report"; }
  bool measures() const override { return true; }
  /// Throws Error(kNotFound) when the set of inputs or the labels are gone.
  storage::JobFinish run(jobs::JobContext& context) override;

private:
  struct Sets;
  Json row_of(jobs::JobContext& context, const Json& resolved, const Json& configuration, const Sets& sets,
              std::chrono::steady_clock::time_point end, const std::function<void()>& tell_progress) const;
  void fill_row(jobs::JobContext& context, const Json& resolved, const Json& configuration, const Sets& sets,
                std::chrono::steady_clock::time_point end, const std::function<void()>& tell_progress,
                Json& row) const;
  void compile(jobs::JobContext& context, const Json& configuration, const PackageFiles& files,
               std::chrono::milliseconds left, Json& row, std::string& warnings) const;
  Json evaluate(jobs::JobContext& context, const Json& resolved, const PackageFiles& files, const Sets& sets,
                std::chrono::milliseconds left) const;

  CompileWork work_;
  parallel::ThreadPool& pool_;
  const BenchmarkOptions options_;
  const target::Target host_;
};

}  // namespace tensormill::server
