/// The durable queue with wake-ups: whatever changes a job in this process goes through here, so that nobody
/// polls. Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "server/jobs/job_source.h"
#include "storage/catalog/catalog.h"

namespace tensormill::jobs {

struct JobEvents {
  std::vector<storage::JobEventRow> events;
  bool ended = false;  ///< nothing will follow these
};

class JobQueue final : public JobSource {
public:
  explicit JobQueue(storage::Catalog& catalog) : catalog_(catalog) {}

  storage::Submitted submit(const storage::JobSubmission& submission);
  /// As Catalog::cancel_job; a running child is killed at once.
  storage::CancelOutcome cancel(const std::string& id, const storage::Submitter& by = {},
                                const std::string& repeat_key = "");
  storage::JobRow retry(const std::string& id, const storage::Submitter& submitter,
                        const std::string& repeat_key = "");
  /// Throws Error(kNotFound), as do the two below.
  storage::JobRow get(const std::string& id);
  /// Returns when the job is final, after `timeout`, or when `stop` is requested, with the job as it is then.
  storage::JobRow wait(const std::string& id, std::chrono::milliseconds timeout, const std::stop_token& stop);
  /// Events after `after`, at once when there are any or the job is final, else after at most `timeout`.
  JobEvents events(const std::string& id, int64_t after, std::chrono::milliseconds timeout,
                   const std::stop_token& stop, int limit = 1000);
  /// Events of all jobs above `after`, at once when there are any, else after at most `timeout`.
  std::vector<storage::PlacedEventRow> all_events(int64_t after, std::chrono::milliseconds timeout,
                                                  const std::stop_token& stop, int limit = 1000);

  // For workers.
  storage::Catalog& catalog() { return catalog_; }
  /// Wakes everyone who waits for a job to change.
  void changed();
  /// The same after another process may have changed jobs: those that run here and were cancelled there are
  /// killed.
  void changed_elsewhere();
  /// A number that grows with each change.
  uint64_t version();
  /// Returns when the version is no longer `seen`, after `timeout`, or when `stop` is requested.
  void wait_for_change(uint64_t seen, std::chrono::milliseconds timeout, const std::stop_token& stop);

  // As JobSource: for the threads of this process, which do what demands nothing.
  void take_up(std::chrono::milliseconds backoff) override;
  std::optional<storage::JobRow> claim(const std::vector<std::string>& kinds, const std::string& owner,
                                       std::chrono::milliseconds lease, const std::stop_token& stop) override;
  storage::HeartbeatResult heartbeat(const storage::JobClaim& claim, std::chrono::milliseconds lease,
                                     const std::optional<std::string>& progress,
                                     const std::vector<storage::JobEventRow>& events) override;
  bool finish(const storage::JobClaim& claim, const storage::JobFinish& finish) override;
  bool release(const storage::JobClaim& claim, const storage::JobRelease& release) override;
  bool is_cancelled(const storage::JobClaim& claim) override { return get(claim.id).cancel_requested; }
  void set_kill(const std::string& id, std::function<void()> kill) override;
  void clear_kill(const std::string& id) override;
  void notify() override { changed(); }
  std::optional<int64_t> share_log(const storage::JobClaim& claim, int64_t position,
                                   std::string_view text) override {
    return catalog_.append_log(claim.id, claim.attempt, position, text);
  }
  std::string shared_log(const storage::JobRow& job, int64_t position, size_t most) override {
    return catalog_.read_log(job.id, job.attempt, position, most);
  }
  void pause(const std::stop_token& stop) override;
  /// Jobs whose lease is over are queued again, when the last look is `lease` ago, also those of workers
  /// elsewhere.
  void look_for_orphans(std::chrono::milliseconds lease);

private:
  void kill_running(const std::string& id);

  storage::Catalog& catalog_;
  std::mutex mutex_;
  std::condition_variable_any condition_;
  uint64_t version_ = 0;
  std::mutex orphans_mutex_;
  std::chrono::milliseconds backoff_{1'000};
  std::chrono::steady_clock::time_point last_look_ = std::chrono::steady_clock::now();
  std::mutex kills_mutex_;
  std::map<std::string, std::function<void()>> kills_;
};

}  // namespace tensormill::jobs
