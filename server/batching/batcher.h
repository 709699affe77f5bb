/// Dynamic batching: a bounded queue in order of priority and arrival in front of the instances of a package.
/// The request at its front leads: it waits until `max_rows` are there or it is `max_delay` old, takes what
/// fits, runs it on its own thread. Others that are queued leave at their deadline or when their client has
/// gone; one that runs can leave too, and the run goes on for the rest.
/// Thread-safety: serve() and waiting() from many threads.
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

/// What one caller wants; whoever derives adds what the runner needs. Set by the caller before serve().
class Request {
public:
  virtual ~Request() = default;

  int64_t rows = 1;    ///< 1..max_rows
  int priority = 5;    ///< smaller ones first
  bool alone = false;  ///< never in one batch with others
  Clock::time_point deadline = Clock::time_point::max();
  std::stop_token cancelled;

  Clock::time_point arrived;     ///< set by serve()
  Clock::time_point started;     ///< set before the runner sees it
  std::optional<Error> failure;  ///< set by the runner: this request failed, the others need not have

private:
  friend class Batcher;
  enum class State { kQueued, kRunning, kDone };
  State state_ = State::kQueued;
  std::condition_variable_any wake_;
};

using RequestPtr = std::shared_ptr<Request>;
/// Runs `batch` (not empty, max_rows at most) on the instance of that number, 0..instances-1, which is nobody
/// else's meanwhile. A thrown Error is the failure of all.
using RunBatch = std::function<void(int instance, std::span<const RequestPtr> batch)>;

class Batcher {
public:
  Batcher(const Limits& limits, RunBatch run);
  /// Returns when `request` has been run. Throws its failure, Error(kUnavailable) when the queue is full,
  /// Error(kDeadlineExceeded), Error(kCancelled).
  void serve(const RequestPtr& request);
  /// Requests that are queued now.
  int waiting() const;

private:
  using Lock = std::unique_lock<std::mutex>;

  void enqueue(const RequestPtr& request);
  void leave_queue(const RequestPtr& request);
  [[noreturn]] void give_up(const RequestPtr& request);
  bool may_lead(const Request& request) const;
  void lead(Lock& lock, const RequestPtr& request);
  std::vector<RequestPtr> fitting(const RequestPtr& leader) const;
  bool is_full(const RequestPtr& leader) const;
  void run(Lock& lock, const std::vector<RequestPtr>& batch);
  void wake_front();

  const Limits limits_;
  const RunBatch run_;
  mutable std::mutex mutex_;
  std::vector<RequestPtr> queue_;  ///< in the order of service
  std::vector<int> free_;          ///< instances
  RequestPtr leader_;              ///< the one that gathers, if any; still queued
};

}  // namespace tensormill::batching
