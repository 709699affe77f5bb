/// One attempt at a job on a worker thread: the JobContext that runners see, and how it ends in the catalog.
/// Thread-safety: one thread, but for the hooks that it gives to the queue and to the keeper of its lease.
#pragma once

#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "server/jobs/job_runner.h"
#include "server/jobs/job_source.h"
#include "server/jobs/lease_keeper.h"
#include "server/jobs/worker_pool.h"

namespace tensormill::jobs {

/// Why an attempt ends without the runner's say. Not an Error: runners let it pass.
enum class Interruption { kCancelled, kLeaseLost, kShutdown, kCrashed };

class JobInterrupted : public std::exception {
public:
  explicit JobInterrupted(Interruption why, std::optional<Error> error = std::nullopt)
      : why_(why), error_(std::move(error)) {}
  const char* what() const noexcept override { return "the attempt was interrupted"; }
  Interruption why() const { return why_; }
  const std::optional<Error>& error() const { return error_; }

private:
  Interruption why_;
  std::optional<Error> error_;
};

class JobAttempt final : public JobContext {
public:
  JobAttempt(JobSource& source, storage::BlobStore& blobs, MeasureGate& gate, LeaseKeeper& keeper,
             const WorkerPoolOptions& options, storage::JobRow job, std::stop_token stop);
  /// Removes the folder and the live log.
  ~JobAttempt() override;
  JobAttempt(const JobAttempt&) = delete;
  JobAttempt& operator=(const JobAttempt&) = delete;

  /// Runs to an end that is in the catalog, or to a lost lease.
  void run(JobRunner& runner);
  /// Whether it published what it stored.
  bool succeeded() const { return succeeded_; }

  const storage::JobRow& job() const override { return job_; }
  const std::string& folder() const override { return folder_; }
  using JobContext::run_child;
  std::string run_child(ChildSpec spec, const TakeEvent& take) override;
  ChildUse last_child() const override { return last_child_; }
  std::unique_ptr<MeasureGate::Quiet> quiet() override;
  void progress(std::string_view json) override;
  void event(std::string_view type, std::string_view json) override;
  void keep_alive() override;
  void log(std::string_view line) override;

private:
  void finish(storage::JobFinish finish);
  void interrupted(const JobInterrupted& interruption);
  /// What the job needs is unreachable just now, such as a store of blobs on another machine: it comes back
  /// later, and this was no attempt.
  void put_off(const Error& error);
  std::optional<Digest> store_log();
  /// Null where nobody counts children.
  ChildSlots::SlotPtr wait_for_slot(uint64_t memory);
  /// Tells the catalog what has come to the log.
  void share_log();
  void commit_if_due();
  void commit();
  ChildOutcome supervise(ChildProcess& child, const TakeEvent& take);
  void set_child(ChildProcess* child);
  /// From any thread: the child ends now, and the attempt with its next word to the context.
  void kill();
  void lose();
  /// Throws when the attempt must stop.
  void check_stop();
  /// Of the child that runs, whose lines may keep this thread busy for long.
  void check_child_limits();

  JobSource& source_;
  storage::BlobStore& blobs_;
  MeasureGate& gate_;
  bool measures_ = false;
  std::optional<storage::BlobHold> hold_;  ///< until what was stored is published, or not
  const WorkerPoolOptions& options_;
  storage::JobRow job_;
  storage::JobClaim claim_;
  std::stop_token stop_;
  std::string folder_;
  std::string log_path_;
  FileDescriptor log_;
  std::optional<std::string> progress_;
  std::vector<storage::JobEventRow> events_;
  std::chrono::steady_clock::time_point last_commit_;
  uint64_t shared_bytes_ = 0;  ///< of the log, that the catalog has
  std::mutex child_mutex_;
  ChildProcess* child_ = nullptr;
  bool killed_ = false;
  bool lost_ = false;
  ChildUse last_child_;
  bool succeeded_ = false;
  std::optional<LeaseKeeper::Kept> kept_;  ///< last: its hooks use what stands above
};

/// Where the log of a running attempt is.
std::string live_log_path(const WorkerPoolOptions& options, const storage::JobRow& job);

}  // namespace tensormill::jobs
