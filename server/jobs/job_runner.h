/// What a kind of job does, without the queue: the pool knows runners by their kind and nothing of compilers.
/// Thread-safety: JobRunner::run is called by several worker threads at once; a JobContext belongs to its
/// thread.
#pragma once

#include <string>
#include <string_view>

#include "server/jobs/child_process.h"
#include "storage/catalog/catalog.h"

namespace tensormill::jobs {

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
  virtual std::string run_child(ChildSpec spec) = 0;
  /// Stores an object as the job's progress and as a "progress" event, with the next commit.
  virtual void progress(std::string_view json) = 0;
  /// Stores an event of another type ("log", "trial" …).
  virtual void event(std::string_view type, std::string_view json) = 0;
  /// Renews the lease, and throws when the work must stop: call it in long stretches between children.
  virtual void keep_alive() = 0;
  /// Appends a line to the job's log.
  virtual void log(std::string_view line) = 0;
};

class JobRunner {
public:
  virtual ~JobRunner() = default;
  /// The JobSubmission::kind that this runs.
  virtual std::string kind() const = 0;
  /// Does the work. All blobs that the returned rows name are durable when it returns; the pool publishes the
  /// rows in one transaction, if the claim still holds. An Error fails the job with its code; it is not tried
  /// again.
  virtual storage::JobFinish run(JobContext& context) = 0;
};

}  // namespace tensormill::jobs
