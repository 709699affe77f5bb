/// A bounded set of threads with a bounded queue: what runs handlers, apart from the threads that do I/O.
/// Threads start when there is work for them and stay. A task that waits for its client says so (Blocked),
/// and another one runs meanwhile: 50 clients that stall do not hold up the one that does not. Threads of a
/// nice value above 0 give way to all others of the process, and so do threads and processes that their tasks
/// start: such a task starts none that others wait for. Thread-safety: all methods from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace tensormill::transport {

class Executor {
public:
  /// While it lives, the task that made it does not count as running.
  class Blocked {
  public:
    explicit Blocked(Executor& executor);
    ~Blocked();
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;

  private:
    Executor& executor_;
  };

  /// At most `threads` tasks run and `queue` wait; up to `max_blocked` more run while so many are blocked.
  /// `nice` is added to that of the thread that makes this.
  Executor(int threads, int queue, int max_blocked, int nice = 0);
  /// As stop().
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  /// False when all threads are busy and the queue is full, or after stop(): then the task is dropped. A task
  /// must not throw.
  bool submit(std::function<void()> task);
  /// Runs what waits, then joins the threads. May be called twice, not from a task.
  void stop();
  /// As stop(), but false, and nothing is joined, when a task still runs at `end`.
  bool stop(std::chrono::steady_clock::time_point end);

private:
  void run();
  bool may_run() const { return !tasks_.empty() && running_ < limit(); }
  size_t limit() const;
  void start_thread_if_needed();

  const size_t max_threads_;
  const size_t max_waiting_;
  const size_t max_blocked_;
  const std::optional<int> nice_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable ended_;  ///< nothing runs or waits
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;     ///< threads without a task
  size_t running_ = 0;  ///< tasks, those that are blocked included
  size_t blocked_ = 0;
  bool stopped_ = false;
};

}  // namespace tensormill::transport
