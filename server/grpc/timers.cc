#include "server/grpc/timers.h"

namespace tensormill::rpc {

Timers::Timers() : thread_([this](const std::stop_token& stop) { work(stop); }) {}

Timers::~Timers() {
  thread_.request_stop();
  thread_.join();
}

Timers::Key Timers::set(std::chrono::milliseconds time, std::function<void()> ring) {
  const std::lock_guard lock(mutex_);
  const Key key(Clock::now() + time, next_++);
  rings_.emplace(key, std::move(ring));
  if (key.first < wakes_) {
    wakes_ = key.first;
    changed_.notify_all();
  }
  return key;
}

void Timers::cancel(const Key& key) {
  const std::lock_guard lock(mutex_);
  rings_.erase(key);
}

void Timers::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (!rings_.empty() && rings_.begin()->first.first <= Clock::now()) {
      const std::function<void()> ring = std::move(rings_.begin()->second);
      rings_.erase(rings_.begin());
      lock.unlock();
      ring();
      lock.lock();
      continue;
    }
    wakes_ = rings_.empty() ? Clock::time_point::max() : rings_.begin()->first.first;
    const auto until = wakes_;
    const auto is_earlier = [&] { return wakes_ < until; };
    if (rings_.empty()) {
      changed_.wait(lock, stop, is_earlier);
    } else {
      changed_.wait_until(lock, stop, until, is_earlier);
    }
  }
}

}  // namespace tensormill::rpc
