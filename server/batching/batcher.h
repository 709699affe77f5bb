/// Dynamic batching: a bounded queue in order of priority and arrival in front of the instances of a package.
///
/// No thread waits for its own request. Without a delay the thread that brings one runs what is at the front
/// of the queue while an instance is free: it takes what fits, runs it and hands out all its answers, and
/// goes on until nothing is left. With one each instance has a thread of its own, which gathers until
/// `max_rows` are there or the oldest has waited `max_delay`, and keeps to the core whose caches hold the
/// package: a long run on another one takes some percent longer, far more than the change of threads. A
/// request leaves at its deadline or when its client has gone, also out of a run, which goes on for the rest.
///
/// Thread-safety: all methods from many threads. At the destructor's start nothing is queued or runs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "server/batching/home_core.h"

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
  /// Where set, the thread of submit() must not wait: what it would run it gives to this function, which
  /// runs it soon. Then others that come meanwhile are in the same batch. Not used with a delay.
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

class Batcher;

/// A place in the queue for a request that is still being made. The batcher outlives it.
class Place {
public:
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

private:
  friend class Batcher;
  explicit Place(Batcher& batcher) : batcher_(batcher) {}
  Batcher& batcher_;
};

class Batcher {
public:
  /// Throws Error(kUnavailable) when the system has no thread for an instance.
  Batcher(const Limits& limits, RunBatch run);
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// Takes a request, of which `done` will hear: Error(kDeadlineExceeded), Error(kCancelled), what the runner
  /// says. Throws Error(kUnavailable) when the queue is full and Error(kCancelled) when the client has gone
  /// already; then `done` is not called. Without a delay and unless `later` is set it may run batches, this
  /// request's and others, before it returns; the caller keeps the owner alive.
  void submit(const RequestPtr& request);
  /// Asks before the work of making a request, such as decoding a picture, is done in vain: whoever holds a
  /// place is one of those that the queue's limit counts, and gives it back before submit(). Throws
  /// Error(kUnavailable) when the queue is full.
  std::unique_ptr<Place> admit();
  /// Requests that are queued now.
  int waiting() const;

private:
  friend class Place;
  using Lock = std::unique_lock<std::mutex>;
  using Batch = std::vector<RequestPtr>;
  /// A thread of the batcher's own. It may be the one that destroys the batcher, at the end of a call of
  /// `done`; then `gone`, which nobody else reads, says so to it.
  struct OwnThread {
    std::thread thread;
    std::shared_ptr<bool> gone = std::make_shared<bool>(false);
    ~OwnThread();
  };
  /// What gathers and runs the batches of one instance.
  struct Gatherer {
    RequestPtr leader;  ///< whose batch it gathers; null while it has none, or when another took it
    bool running = false;
    HomeCore home;  ///< of its own thread
    std::condition_variable wake;
    OwnThread own;
  };

  void stop();
  void check_room() const;
  void enqueue(const RequestPtr& request);
  void work(Lock& lock);
  void work_later(const std::function<void(Request::Task)>& later, const std::shared_ptr<void>& owner);
  bool gathers() const { return limits_.max_delay.count() > 0; }
  void wake_gatherers();
  RequestPtr next_leader() const;
  Batch fitting(const RequestPtr& leader) const;
  bool is_full(const RequestPtr& leader) const;
  void gather(int instance, const std::shared_ptr<bool>& gone);
  void run(Lock& lock, int instance, const Batch& batch);
  void run_at_home(Gatherer& self, int instance, const Batch& batch);
  void leave(const RequestPtr& request);
  void release_gatherer(const RequestPtr& leader);
  void watch_deadline(const RequestPtr& request);
  void watch_deadlines(const std::shared_ptr<bool>& gone);
  Batch take_late(Clock::time_point now);

  const Limits limits_;
  const RunBatch run_;
  mutable std::mutex mutex_;
  Batch queue_;            ///< in the order of service
  size_t places_ = 0;      ///< held by requests that are being made
  Batch running_;          ///< those that nobody has answered yet
  std::vector<int> free_;  ///< instances
  size_t planned_ = 0;     ///< tasks given to `later` that have not begun
  Clock::time_point next_deadline_ = Clock::time_point::max();  ///< that the watch waits for, or before it
  std::condition_variable deadline_changed_;
  bool stopped_ = false;
  std::vector<std::unique_ptr<Gatherer>> gatherers_;  ///< by instance; none without a delay
  OwnThread watch_;                                   ///< of deadlines; starts with the first one
};

}  // namespace tensormill::batching
