/// Ends the process at a time, whatever its other threads do: a handler that never returns, a lock that
/// nobody gives back, a log that nobody reads. Safe at any moment: what was acknowledged is on the disk, and
/// children end with their parent. Thread-safety: all methods from one thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace tensormill::cli {

class ExitGuard {
public:
  /// Starts the thread at once: when it is needed there may be none to have. `last_words` go into the
  /// log where it takes them at once.
  explicit ExitGuard(std::string last_words);
  /// Disarms it.
  ~ExitGuard();
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

  /// Once `limit` is over the process ends with exit code 0.
  void arm(std::chrono::milliseconds limit);
  /// Ends it now, without destructors.
  [[noreturn]] void leave() const;

private:
  void watch();

  const std::string last_words_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  bool disarmed_ = false;
  std::thread thread_;
};

}  // namespace tensormill::cli
