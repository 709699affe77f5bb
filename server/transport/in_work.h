/// Counts requests: those whose answers are not delivered yet.
/// Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tensormill::transport {

class InWork {
public:
  /// Counts as one while it lives.
  class Entry {
  public:
    explicit Entry(InWork& in_work) : in_work_(in_work) { in_work_.change(1); }
    ~Entry() { in_work_.change(-1); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

  private:
    InWork& in_work_;
  };

  void change(int change) {
    const std::lock_guard lock(mutex_);
    count_ += change;
    if (count_ == 0) idle_.notify_all();
  }
  int count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return count_ == 0; });
  }
  /// False when there are some at `end` still.
  bool wait_until_idle(std::chrono::steady_clock::time_point end) {
    std::unique_lock lock(mutex_);
    return idle_.wait_until(lock, end, [this] { return count_ == 0; });
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  int count_ = 0;
};

}  // namespace tensormill::transport
