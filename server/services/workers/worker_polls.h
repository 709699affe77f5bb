/// Workers elsewhere that wait for work: none of them has a thread here. One thread looks for jobs whenever
/// some may have come, and gives each to a worker that fits. Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/services/worker_service.h"
#include "server/jobs/job_queue.h"

namespace tensormill::server {

/// Jobs that a worker may have: of one of these kinds, with one of these demands.
struct WorkerWants {
  std::vector<std::string> kinds;
  std::vector<std::string> demands;
  auto operator<=>(const WorkerWants&) const = default;
};

class WorkerPolls {
public:
  using Found = std::optional<services::WorkerLease>;
  /// The item of a job that was just claimed; nothing where it cannot be done, which then is in the catalog.
  using MakeLease = std::function<Found(const storage::JobRow&)>;

  /// `may` is called before an owner is given anything.
  WorkerPolls(jobs::JobQueue& queue, std::chrono::milliseconds lease,
              std::function<bool(const std::string&)> may, MakeLease make);
  /// As stop.
  ~WorkerPolls();
  WorkerPolls(const WorkerPolls&) = delete;
  WorkerPolls& operator=(const WorkerPolls&) = delete;

  /// Tells `done` soon after there is a job that `wants` (any of them) fit, leased to `owner`; nothing after
  /// `wait`, or when `cancelled` stops. Throws Error(kUnavailable) past kMostWaiting, and after stop().
  /// `lease` 0: as long as others' leases.
  void wait(std::vector<WorkerWants> wants, std::string owner, std::chrono::milliseconds lease,
            std::chrono::milliseconds wait, const std::stop_token& cancelled, services::Done<Found> done);
  /// Those of an owner get an answer without a lease, and ask again: what it may have has changed.
  void end(const std::string& owner);
  /// The same, and returns when they were answered, so that none of them gets a lease after.
  void end_now(const std::string& owner);
  /// The answer with a lease, JOB.ATTEMPT, reached nobody: the job is queued again soon.
  void take_back(const std::string& lease);
  /// All that wait get an answer without a lease, and nobody may wait any more.
  void stop();

private:
  static constexpr size_t kMostWaiting = 20'000;
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    std::vector<WorkerWants> wants;
    std::string owner;
    std::chrono::milliseconds lease;
    Clock::time_point until;
    std::stop_token cancelled;
    services::Done<Found> done;
    std::unique_ptr<std::stop_callback<std::function<void()>>> wake;  ///< when the client goes
  };
  void work(const std::stop_token& stop);
  /// Answers who is due or can have a job; those that go on waiting are left in `waiting`. How long nothing
  /// will happen by itself.
  std::chrono::milliseconds serve(std::vector<Waiting>& waiting, bool is_last);
  /// Answers it if there is a job for it now.
  bool give(Waiting& one);
  void queue_again(const std::vector<std::string>& leases);

  jobs::JobQueue& queue_;
  const std::chrono::milliseconds lease_;
  const std::function<bool(const std::string&)> may_;
  const MakeLease make_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::set<std::string> ended_;  ///< owners
  std::vector<Waiting> waiting_;
  std::vector<std::string> taken_back_;  ///< leases
  uint64_t rounds_begun_ = 0, rounds_done_ = 0;
  std::condition_variable round_done_;
  std::jthread thread_;
};

}  // namespace tensormill::server
