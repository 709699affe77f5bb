/// The one thread pool of a process: made in main (in the C API: in tm_runtime) and passed.
///
/// The pool stands for `cores` cores. A run leases some of them, waits when none is free, and counts its own
/// thread as the first; so two executors never fight over a core. In a session all workers run one function,
/// side by side, and share the loops that they meet in it (team.h): each has consecutive tasks, and those
/// that are done early take the others'. Which thread runs a task is not determined, so results must not
/// depend on it. Thread-safety: ThreadPool may be used by any thread; a Lease belongs to one thread at a
/// time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace tensormill::parallel {

/// Tells long work to stop. Thread-safe.
class CancelToken {
public:
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

private:
  std::atomic<bool> cancelled_{false};
};

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// One task: 0 or an error code. `worker` < Lease::workers() is the same for all tasks of one thread.
using TaskFunction = int32_t (*)(void* context, int64_t task, int32_t worker);

class Team;
class ThreadPool;

/// What a worker does in a session.
using SessionFunction = void (*)(void* context, Team& team, int32_t worker);

/// Cores held by one run; given back at the end of its life.
class Lease {
public:
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&&) = delete;
  ~Lease();
  int workers() const { return static_cast<int>(helpers_.size()) + 1; }
  /// Runs the function in this thread (worker 0) and in the others of the lease; returns when it runs nowhere
  /// any more. A worker that is still asleep at the end of worker 0's is left out: it must not be waited for,
  /// which the loops of a team never do. Not to be called from inside a session.
  void session(SessionFunction function, void* context);
  /// A session of one loop. Runs all tasks, this thread included, and returns when none runs any more: the
  /// code of the lowest task that failed (later ones may be skipped), or 0. `cancel_code` is returned when
  /// `cancel` says so and no lower task failed.
  int32_t parallel_for(int64_t tasks, TaskFunction function, void* context,
                       const CancelToken* cancel = nullptr, int32_t cancel_code = 0);

private:
  friend class ThreadPool;
  Lease(ThreadPool* pool, std::vector<int> helpers);

  ThreadPool* pool_;
  std::vector<int> helpers_;
  std::unique_ptr<Team> team_;
};

class ThreadPool {
public:
  /// `cores` >= 1; starts cores - 1 threads, which sleep until they are leased.
  explicit ThreadPool(int cores);
  /// No lease may be alive.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  int cores() const { return cores_; }
  /// Whether lease() would not have waited at this moment.
  bool has_free_core() const { return free_cores_.load(std::memory_order_relaxed) > 0; }
  /// Cores that nobody has at this moment.
  int free_cores() const { return free_cores_.load(std::memory_order_relaxed); }
  /// Up to `wanted` cores, at least one: waits while none is free. Throws Error(kDeadlineExceeded) or
  /// Error(kCancelled) (cancel is noticed within some milliseconds).
  Lease lease(int wanted, const Deadline& deadline = std::nullopt, const CancelToken* cancel = nullptr);

private:
  friend class Lease;
  struct Job;
  struct Helper;
  void helper_main(Helper& helper);
  void give_back(const std::vector<int>& helpers);

  const int cores_;
  std::vector<std::unique_ptr<Helper>> helpers_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::atomic<int> free_cores_;  ///< written under mutex_
  std::vector<int> free_helpers_;
};

}  // namespace tensormill::parallel
