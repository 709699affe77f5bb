#include "server/transport/executor.h"

namespace tensormill::transport {

Executor::Executor(int threads, int queue)
    : max_threads_(static_cast<size_t>(threads)), max_waiting_(static_cast<size_t>(queue)) {}

Executor::~Executor() { stop(); }

bool Executor::submit(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return false;
  // Tasks that an idle thread is about to take do not count as waiting.
  const size_t waiting = tasks_.size() > idle_ ? tasks_.size() - idle_ : 0;
  const bool start = tasks_.size() >= idle_ && threads_.size() < max_threads_;
  if (!start && tasks_.size() >= idle_ && waiting >= max_waiting_) return false;
  tasks_.push_back(std::move(task));
  if (start) threads_.emplace_back([this] { run(); });
  wake_.notify_one();
  return true;
}

void Executor::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (tasks_.empty()) {
      if (stopped_) return;
      ++idle_;
      wake_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
      --idle_;
      continue;
    }
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
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
