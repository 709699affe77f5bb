/// What is to be done when a time has passed, unless that is called off before: one thread for all of a
/// listener. (A grpc::Alarm that is cancelled, as each one of a call that goes well is, wakes a thread of
/// gRPC's to say so.) Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace tensormill::rpc {

class Timers {
public:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<Clock::time_point, uint64_t>;

  Timers();
  /// What has not rung does not ring any more.
  ~Timers();
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  /// Calls `ring` on the thread of the timers, which others wait for, after `time`.
  Key set(std::chrono::milliseconds time, std::function<void()> ring);
  /// It may be ringing.
  void cancel(const Key& key);

private:
  void work(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Key, std::function<void()>> rings_;
  uint64_t next_ = 0;
  Clock::time_point wakes_ = Clock::time_point::min();  ///< the thread looks by then without a notification
  std::jthread thread_;
};

}  // namespace tensormill::rpc
