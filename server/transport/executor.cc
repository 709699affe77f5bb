#include "server/transport/executor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "server/transport/scheduling.h"

namespace tensormill::transport {
namespace {

/// The calling thread's nice value and `more`. Threads that a task starts begin with the task's, so that each
/// sets its own to what the maker's was to become.
std::optional<int> below_caller(int more) {
  if (more == 0) return std::nullopt;
  errno = 0;
  const int own = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  if (errno != 0) return std::nullopt;
  return own + more;
}

}  // namespace

Executor::Executor(int threads, int queue, int max_blocked, int nice)
    : max_threads_(static_cast<size_t>(threads)),
      max_waiting_(static_cast<size_t>(queue)),
      max_blocked_(static_cast<size_t>(max_blocked)),
      nice_(below_caller(nice)) {}

Executor::~Executor() { stop(); }

size_t Executor::limit() const { return max_threads_ + std::min(blocked_, max_blocked_); }

void Executor::start_thread_if_needed() {
  if (tasks_.size() > idle_ && threads_.size() < limit() && !stopped_)
    threads_.emplace_back([this] { run(); });
}

bool Executor::submit(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return false;
    // Tasks that a thread is about to take do not count as waiting.
    const size_t free = limit() > running_ ? limit() - running_ : 0;
    if (tasks_.size() >= free + max_waiting_) return false;
    tasks_.push_back(std::move(task));
    start_thread_if_needed();
  }
  wake_.notify_one();  // without the lock, which whoever wakes takes first
  return true;
}

void Executor::run() {
  // Of this thread alone, as Linux has it. Where it is not allowed all are equals.
  if (nice_) give_way(*nice_);
  std::unique_lock lock(mutex_);
  while (true) {
    if (!may_run()) {
      if (stopped_ && tasks_.empty()) return;
      ++idle_;
      wake_.wait(lock, [this] { return may_run() || (stopped_ && tasks_.empty()); });
      --idle_;
      continue;
    }
    {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      ++running_;
      lock.unlock();
      task();
    }
    lock.lock();
    --running_;
    if (!stopped_ || !tasks_.empty()) continue;
    wake_.notify_all();
    if (running_ == 0) ended_.notify_all();
  }
}

Executor::Blocked::Blocked(Executor& executor) : executor_(executor) {
  const std::lock_guard lock(executor_.mutex_);
  ++executor_.blocked_;
  if (executor_.tasks_.empty()) return;
  executor_.start_thread_if_needed();
  executor_.wake_.notify_one();
}

Executor::Blocked::~Blocked() {
  const std::lock_guard lock(executor_.mutex_);
  --executor_.blocked_;
}

bool Executor::stop(std::chrono::steady_clock::time_point end) {
  {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    wake_.notify_all();
    if (!ended_.wait_until(lock, end, [this] { return running_ == 0 && tasks_.empty(); })) return false;
  }
  stop();
  return true;
}

void Executor::stop() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    threads.swap(threads_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tensormill::transport
