/// A bounded set of threads with a bounded queue: what runs handlers, apart from the threads that do I/O.
/// Threads start when there is work for them and stay. Thread-safety: all methods from any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tensormill::transport {

class Executor {
public:
  /// At most `threads` tasks run and `queue` wait.
  Executor(int threads, int queue);
  /// As stop().
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  /// False when all threads are busy and the queue is full, or after stop(): then the task is dropped. A task
  /// must not throw.
  bool submit(std::function<void()> task);
  /// Runs what waits, then joins the threads. May be called twice, not from a task.
  void stop();

private:
  void run();

  const size_t max_threads_;
  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stopped_ = false;
};

}  // namespace tensormill::transport
