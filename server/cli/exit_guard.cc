#include "server/cli/exit_guard.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <utility>

namespace tensormill::cli {

ExitGuard::ExitGuard(std::string last_words)
    : last_words_(std::move(last_words)), thread_([this] { watch(); }) {}

ExitGuard::~ExitGuard() {
  {
    const std::lock_guard lock(mutex_);
    disarmed_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ExitGuard::arm(std::chrono::milliseconds limit) {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = std::chrono::steady_clock::now() + limit;
  }
  changed_.notify_all();
}

void ExitGuard::watch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return disarmed_ || deadline_; });
  if (disarmed_ || changed_.wait_until(lock, *deadline_, [this] { return disarmed_; })) return;
  leave();
}

void ExitGuard::leave() const {
  // Neither the logger nor the allocator: whoever does not end may hold their locks.
  std::array<char, 512> line{};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%S.000Z", &parts);
  const int size = std::snprintf(line.data(), line.size(),
                                 R"({"ts":"%s","level":"warning","msg":"%s"})"
                                 "\n",
                                 time.data(), last_words_.c_str());
  // It ends all the same where the line cannot be written: not even a pipe that nobody reads, and that is
  // full, may hold it.
  pollfd output{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&output, 1, 0) == 1 && (output.revents & POLLOUT) != 0) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), static_cast<size_t>(size));
  }
  ::_exit(0);
}

}  // namespace tensormill::cli
