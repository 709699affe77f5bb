/// The search of a tune job, seen from the server: answers the tuning child, has its candidates measured and
/// keeps its records. Thread-safety: belongs to the job's thread.
#pragma once

#include <string>
#include <vector>

#include "runtime/parallel/thread_pool.h"
#include "server/jobs/job_runner.h"
#include "server/measure/host.h"
#include "server/services/compile_steps.h"

namespace tensormill::server {

class TuneSearch {
public:
  TuneSearch(const CompileTools& tools, parallel::ThreadPool& pool, jobs::JobContext& context,
             const Json& resolved);
  /// Runs the child on the bundle; its report (measure::TuneReport::result).
  Json run(const GraphFiles& graph);
  /// Keys of the model's kernels, once it ran.
  const std::vector<std::string>& kernels() const { return kernels_; }
  /// The kernels' records that were measured on this kind of CPU, with as many threads and this compiler.
  std::vector<storage::TuningRecordRow> measured_here() const;

private:
  /// What the kernels' records have in common.
  storage::TuningFilter filter() const;
  void on_tasks(const Json& keys);
  void on_measure(const Json& request);
  void on_record(Json record);
  /// What the kernels' rates are to be seen against; null when it could not be measured.
  Json measured_roof();
  void answer(const Json& line);
  jobs::ChildSpec spec(const GraphFiles& graph, int answers) const;

  const CompileTools& tools_;
  parallel::ThreadPool& pool_;
  jobs::JobContext& context_;
  const Json& resolved_;
  FileDescriptor known_, code_, tensors_, answers_;
  measure::MeasureHost host_;
  std::vector<std::string> kernels_;
};

}  // namespace tensormill::server
