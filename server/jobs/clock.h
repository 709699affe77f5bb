/// Time as the workers see it, so that tests can move it. Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>

namespace tensormill::jobs {

class Clock {
public:
  using time_point = std::chrono::steady_clock::time_point;
  virtual ~Clock() = default;
  virtual time_point now() = 0;
  /// Returns when it is `until`, when `woken` is true, or when `stop` is requested. `lock` is held when
  /// `woken` is called and when it returns; whoever makes `woken` true notifies `changed`.
  virtual void wait(std::unique_lock<std::mutex>& lock, std::condition_variable_any& changed,
                    const std::stop_token& stop, time_point until, const std::function<bool()>& woken) = 0;
};

/// The machine's.
class SteadyClock final : public Clock {
public:
  time_point now() override { return std::chrono::steady_clock::now(); }
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable_any& changed,
            const std::stop_token& stop, time_point until, const std::function<bool()>& woken) override {
    changed.wait_until(lock, stop, until, woken);
  }
};

}  // namespace tensormill::jobs
