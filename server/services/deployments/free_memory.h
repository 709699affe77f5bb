/// What malloc keeps of the memory that was freed. glibc's allocator has arenas, heaps that threads share.
/// Thread-safety: limit_arenas before any thread starts; all else is free to call.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <utility>

namespace tensormill::server {

/// Each thread would have an arena of its own, and keep some MiB there of what it has freed: as many arenas
/// as threads can run at once are enough. Only a hint.
void limit_arenas();

/// Gives free pages of all arenas back to the system; what is allocated stays as it is. For a moment it runs
/// as many threads as there are arenas; where the system has none left, some free memory stays.
void give_back_free_memory();

/// Gives it back once a second at most, however often it is asked: it takes a millisecond, but growing again
/// costs ten times that, a system call and a fault a page, under a lock for which other threads wait.
class SeldomGiveBack {
public:
  using Clock = std::chrono::steady_clock;
  explicit SeldomGiveBack(std::function<Clock::time_point()> now = Clock::now,
                          std::function<void()> give_back = give_back_free_memory)
      : now_(std::move(now)), give_back_(std::move(give_back)) {}

  /// False when it is too soon after the last time; what is free then serves what is allocated next.
  bool give_back();

private:
  static constexpr std::chrono::seconds kBetween{1};
  const std::function<Clock::time_point()> now_;
  const std::function<void()> give_back_;
  std::mutex mutex_;
  Clock::time_point next_ = Clock::time_point::min();
};

}  // namespace tensormill::server
