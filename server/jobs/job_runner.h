/// What a kind of job does, without the queue: the pool knows runners by their kind and nothing of compilers.
/// Thread-safety: JobRunner::run is called by several worker threads at once; a JobContext belongs to its
/// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/jobs/child_process.h"
#include "server/jobs/measure_gate.h"
#include "storage/catalog/catalog.h"

namespace tensormill::jobs {

/// What a child took.
struct ChildUse {
  double cpu_seconds = 0;
  int64_t max_resident_bytes = 0;
};

/// The hands of one attempt at one job.
class JobContext {
public:
  virtual ~JobContext() = default;
  virtual const storage::JobRow& job() const = 0;
  /// An empty folder of this attempt, removed after it; where children work unless the spec says otherwise.
  virtual const std::string& folder() const = 0;
  /// Runs a child to its end, keeping the lease, storing its progress and events; returns its result (JSON).
  /// Throws the child's Error; Error(kMemoryBudget), Error(kDeadlineExceeded), Error(kInternal) for its other
  /// ends; for a crash, a cancel, a lost lease or a shutdown it throws what only the pool catches.
  std::string run_child(ChildSpec spec) { return run_child(std::move(spec), nullptr); }
  /// Events that `take` returns true for go no further; what it throws ends the child. It runs on this thread
  /// and may call anything here but run_child.
  using TakeEvent = std::function<bool(const std::string& type, const std::string& json)>;
  virtual std::string run_child(ChildSpec spec, const TakeEvent& take) = 0;
  /// Of the last child that run_child returned from.
  virtual ChildUse last_child() const = 0;
  /// The children of jobs that do not measure stand still for as long as it lives.
  virtual std::unique_ptr<MeasureGate::Quiet> quiet() = 0;
  /// Stores an object as the job's progress and as a "progress" event, with the next commit.
  virtual void progress(std::string_view json) = 0;
  /// Stores an event of another type ("log", "trial" …).
  virtual void event(std::string_view type, std::string_view json) = 0;
  /// Throws when the work must stop: call it in long stretches between children and, several times a second,
  /// in those inside a `TakeEvent`, where it also looks at what the child that runs holds. The lease is
  /// renewed without it.
  virtual void keep_alive() = 0;
  /// Appends a line to the job's log.
  virtual void log(std::string_view line) = 0;
};

class JobRunner {
public:
  virtual ~JobRunner() = default;
  /// The JobSubmission::kind that this runs.
  virtual std::string kind() const = 0;
  /// Jobs of such a kind run one at a time, beside the others.
  virtual bool measures() const { return false; }
  /// Whether what this job measures is elsewhere, so that it mostly waits: such jobs run beside each other
  /// and hold nobody up.
  virtual bool is_elsewhere(const storage::JobRow& /*job*/) const { return false; }
  /// Does the work. All blobs that the returned rows name are durable when it returns; the pool publishes the
  /// rows in one transaction, if the claim still holds. An Error fails the job with its code; it is not tried
  /// again.
  virtual storage::JobFinish run(JobContext& context) = 0;
};

}  // namespace tensormill::jobs
