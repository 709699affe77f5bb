/// The search of a tune job, seen from the server: answers the tuning child, has its candidates measured and
/// keeps its records. Thread-safety: belongs to the job's thread.
#pragma once

#include <string>
#include <vector>

#include "server/jobs/job_runner.h"
#include "server/services/jobs/compile_steps.h"
#include "server/services/jobs/tune_bench.h"

namespace tensormill::server {

class TuneSearch {
public:
  /// All borrowed; `files` are those of `bench`.
  TuneSearch(const CompileTools& tools, jobs::JobContext& context, const Json& resolved, TuneBench& bench,
             TuneFiles files);
  /// Runs the child on the bundle; its report (measure::TuneReport::result).
  Json run(const GraphFiles& graph);
  /// Keys of the model's kernels, once it ran.
  const std::vector<std::string>& kernels() const { return kernels_; }
  /// What the job's records hold for.
  TuningPlace place() const;
  /// The kernels' records that were measured at such a place, with this compiler.
  std::vector<storage::TuningRecordRow> measured_here() const;

private:
  /// What the kernels' records have in common.
  storage::TuningFilter filter() const;
  void on_tasks(const Json& keys);
  void on_measure(const Json& request);
  void on_record(Json record);
  void answer(const Json& line);
  jobs::ChildSpec spec(const GraphFiles& graph, int answers) const;

  const CompileTools& tools_;
  jobs::JobContext& context_;
  const Json& resolved_;
  TuneBench& bench_;
  const TuneFiles files_;
  FileDescriptor known_, answers_;
  std::vector<std::string> kernels_;
};

}  // namespace tensormill::server
