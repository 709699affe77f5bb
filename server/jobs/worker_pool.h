/// Threads that claim jobs and see them through: lease, children, progress, log, publication.
/// Thread-safety: the constructor starts the threads, stop (or the destructor) ends them; open_log from many
/// threads.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "server/jobs/child_slots.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/job_source.h"
#include "server/jobs/lease_keeper.h"
#include "server/jobs/shared_logs.h"
#include "storage/blob/blob_store.h"

namespace tensormill::jobs {

struct WorkerPoolOptions {
  int threads = 1;     ///< for kinds that do not measure; those that do have one more
  std::string folder;  ///< for attempts and live logs; emptied at start
  std::string owner;   ///< of the leases; unique to this process, made up when empty
  std::chrono::milliseconds lease{30'000};
  std::chrono::milliseconds backoff{1'000};     ///< after the first crash; doubles with each attempt
  std::chrono::milliseconds commit_every{200};  ///< at most one commit of progress in that time
  uint64_t max_log_bytes = uint64_t{8} << 20;
  std::shared_ptr<const ChildPolicy> policy = {};  ///< of all children
  ChildSlots* slots = nullptr;  ///< what children run side by side, borrowed; null: as many as there are
  /// By which leases are renewed; null: the machine's.
  Clock* clock = nullptr;
  /// Other processes share the catalog: live logs are passed to it as well, so that all of them can show
  /// them.
  bool shares_logs = false;
  /// Removes what an attempt stored and did not publish; null: nobody does.
  std::function<void()> collect = nullptr;
};

class WorkerPool {
public:
  /// Takes up what an earlier process left running, then starts. `runners` of distinct kinds; all borrowed
  /// things outlive the pool.
  WorkerPool(JobSource& source, storage::BlobStore& blobs, std::vector<JobRunner*> runners,
             WorkerPoolOptions options);
  /// As stop.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Ends the threads: running children are killed, and their jobs are queued again without losing an
  /// attempt.
  void stop();
  /// Claims no further job and returns when those that run have ended; stop ends it, from another thread.
  void drain();
  /// The job's log as it stands, also while it runs, here or in another process that shares the catalog.
  JobLog open_log(const storage::JobRow& job);

private:
  void work(const std::vector<std::string>& kinds, const std::stop_token& stop);
  void attempt(const storage::JobRow& job, const std::stop_token& stop);
  /// An attempt on a thread of its own.
  struct Away {
    std::shared_ptr<std::atomic<bool>> has_ended;
    std::jthread thread;
  };
  Away send_away(const storage::JobRow& job, const std::stop_token& stop);
  JobRunner& runner_of(const storage::JobRow& job) const;

  JobSource& source_;
  storage::BlobStore& blobs_;
  std::vector<JobRunner*> runners_;
  std::vector<std::string> kinds_;      ///< that do not measure
  std::vector<std::string> measuring_;  ///< kinds: one thread for all of them
  MeasureGate gate_;
  WorkerPoolOptions options_;
  SharedLogs shared_logs_;
  SteadyClock steady_;
  LeaseKeeper keeper_;
  void join();

  std::stop_source drained_;
  std::mutex joining_;
  std::vector<std::jthread> threads_;
};

}  // namespace tensormill::jobs
