/// Dynamic batching: a bounded queue in order of priority and arrival in front of the instances of a package.
///
/// No thread waits for its own request. The thread that brings one runs what is at the front of the queue
/// while an instance is free: it gathers until `max_rows` are there or the oldest has waited `max_delay`,
/// takes what fits, runs it and hands out all its answers, and goes on until nothing is left. A thread whose
/// request is part of what another one gathers is free at once, and the one that fills the batch runs it. A
/// request leaves at its deadline or when its client has gone, also out of a run, which goes on for the rest.
///
/// Thread-safety: all methods from many threads. At the destructor's start nothing is queued or runs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::batching {

using Clock = std::chrono::steady_clock;

struct Limits {
  int instances = 1;     ///< batches in work at once
  int max_queue = 64;    ///< requests that wait while no instance is free; past it Error(kUnavailable)
  int64_t max_rows = 1;  ///< of a batch
  std::chrono::microseconds max_delay{0};  ///< what a request waits for others while an instance is free
};

/// What one caller wants; whoever derives adds what the runner needs. Set by the caller before submit().
class Request {
public:
  using Task = std::function<void()>;

  virtual ~Request() = default;

  int64_t rows = 1;    ///< 1..max_rows
  int priority = 5;    ///< smaller ones first
  bool alone = false;  ///< never in one batch with others
  Clock::time_point deadline = Clock::time_point::max();
  std::stop_token cancelled;
  /// Called once, with nothing when the request has been run: on any thread, in submit() already, without
  /// locks. Must not throw.
  std::function<void(std::optional<Error>)> done;
  /// Where set, the thread of submit() must not be kept: what it would run it gives to this function, which
  /// runs it soon. Then others that come meanwhile are in the same batch.
  std::function<void(Task)> later;
  std::shared_ptr<void> owner;  ///< keeps the batcher alive until `done` has returned

  Clock::time_point arrived;     ///< set by submit()
  Clock::time_point started;     ///< set before the runner sees it
  std::optional<Error> failure;  ///< set by the runner: this request failed, the others need not have

private:
  friend class Batcher;
  enum class State { kNew, kQueued, kRunning, kDone };
  State state_ = State::kNew;
  std::optional<std::stop_callback<Task>> watch_;
};

using RequestPtr = std::shared_ptr<Request>;
/// Runs `batch` (not empty, max_rows at most) on the instance of that number, 0..instances-1, which is nobody
/// else's meanwhile. A thrown Error is the failure of all.
using RunBatch = std::function<void(int instance, std::span<const RequestPtr> batch)>;

class Batcher {
public:
  Batcher(const Limits& limits, RunBatch run);
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// Takes a request, of which `done` will hear: Error(kDeadlineExceeded), Error(kCancelled), what the runner
  /// says. Throws Error(kUnavailable) when the queue is full and Error(kCancelled) when the client has gone
  /// already; then `done` is not called. Unless `later` is set it may run batches, this request's and others,
  /// before it returns; the caller keeps the owner alive.
  void submit(const RequestPtr& request);
  /// Requests that are queued now.
  int waiting() const;

private:
  using Lock = std::unique_lock<std::mutex>;
  using Batch = std::vector<RequestPtr>;
  /// A thread that waits for others to join its request. It keeps an instance for itself.
  struct Gatherer {
    RequestPtr leader;
    std::condition_variable wake;
    bool over = false;  ///< another thread runs the batch, or the leader has left
  };

  void enqueue(const RequestPtr& request);
  void work(Lock& lock);
  void work_later(const std::function<void(Request::Task)>& later, const std::shared_ptr<void>& owner);
  bool may_run() const { return free_.size() > gatherers_.size(); }
  void take_over_full();
  RequestPtr next_leader() const;
  Batch fitting(const RequestPtr& leader) const;
  bool is_full(const RequestPtr& leader) const;
  void gather(Lock& lock, const RequestPtr& leader);
  void run(Lock& lock, const Batch& batch);
  void leave(const RequestPtr& request);
  void release_gatherer(const RequestPtr& leader);
  void watch_deadline(const RequestPtr& request);
  void watch_deadlines(const std::shared_ptr<bool>& gone);
  Batch take_late(Clock::time_point now);

  const Limits limits_;
  const RunBatch run_;
  mutable std::mutex mutex_;
  Batch queue_;                     ///< in the order of service
  Batch running_;                   ///< those that nobody has answered yet
  std::vector<int> free_;           ///< instances
  std::list<Gatherer*> gatherers_;  ///< each on the stack of its thread
  size_t planned_ = 0;              ///< tasks given to `later` that have not begun
  Clock::time_point next_deadline_ = Clock::time_point::max();  ///< that the watch waits for, or before it
  std::condition_variable deadline_changed_;
  bool stopped_ = false;
  std::shared_ptr<bool> gone_ = std::make_shared<bool>(false);  ///< read by the watch's own thread alone
  std::thread watch_;                                           ///< of deadlines; starts with the first one
};

}  // namespace tensormill::batching
