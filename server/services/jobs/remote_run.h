/// Runs of packages on workers elsewhere, for requests that wait for them: a job of the kind "run", whose end
/// is awaited. Thread-safety: all methods from many threads.
#pragma once

#include <atomic>
#include <chrono>

#include "api/services/package_service.h"
#include "server/jobs/job_queue.h"
#include "server/services/keys/caller_quota.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

class RemoteRuns {
public:
  RemoteRuns(jobs::JobQueue& queue, storage::BlobStore& blobs, CallerQuota& callers,
             std::chrono::milliseconds timeout)
      : queue_(queue), blobs_(blobs), callers_(callers), timeout_(timeout) {}

  /// On a worker that has the labels `options.on`. Throws what the run throws there,
  /// as throw_late, Error(kCancelled),
  /// Error(kUnavailable) when too many wait.
  services::RunResult run(const storage::PackageRow& package, const services::NamedTensors& inputs,
                          const services::RunOptions& options, const services::CallContext& context);

private:
  storage::JobRow submit(const storage::PackageRow& package, const services::NamedTensors& inputs,
                         const services::RunOptions& options, const services::CallContext& context,
                         std::chrono::milliseconds timeout);

  jobs::JobQueue& queue_;
  storage::BlobStore& blobs_;
  CallerQuota& callers_;
  const std::chrono::milliseconds timeout_;
  std::atomic<int> waiting_{0};
};

}  // namespace tensormill::server
