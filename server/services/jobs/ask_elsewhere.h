/// Parts of a job that a worker elsewhere does: each is a job of its own, which the worker leases, and which
/// the one that asks waits for. Thread-safety: pure functions; a context belongs to its job's thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "runtime/base/json_fwd.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/job_runner.h"

namespace tensormill::server {

struct AskOptions {
  int max_attempts = 2;
  /// Of the whole, the time in the queue with it; nothing: as long as the job that asks lives.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

/// The result of a job of this resolved form, with its "kind", "on" and "job", which is the one that asks.
/// Cancels it when nobody waits any more. Throws what ended it; Error(kCancelled); as throw_late.
Json ask_elsewhere(jobs::JobQueue& queue, jobs::JobContext& context, Json form, const AskOptions& options);

/// Throws that `timeout` is over for a job for the labels `on`, which has not ended:
/// Error(kDeadlineExceeded), with services::kOnWhat among its details where no worker has it.
[[noreturn]] void throw_late(const storage::JobRow& job, const std::string& on,
                             std::chrono::milliseconds timeout);

/// What an earlier attempt at `job` still waits for is cancelled.
void cancel_asked(jobs::JobQueue& queue, const std::string& kind, const std::string& job);

}  // namespace tensormill::server
