#include "server/cli/exit_guard.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <utility>

namespace tensormill::cli {

ExitGuard::ExitGuard(std::string last_words, const FileDescriptor& stop, std::chrono::milliseconds limit)
    : last_words_(std::move(last_words)), stop_(stop.get()), limit_(limit) {
  thread_ = std::thread([this] { watch(); });
}

ExitGuard::~ExitGuard() {
  ended_.ring();
  thread_.join();
}

// Of what poll() fails with there is only a signal.
void ExitGuard::watch() {
  std::array<pollfd, 2> watched{{{stop_, POLLIN, 0}, {ended_.fd(), POLLIN, 0}}};
  while (::poll(watched.data(), watched.size(), -1) < 0) {
  }
  if (watched[1].revents != 0) return;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + limit_;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) leave();
    constexpr int64_t kMost = 1'000'000;
    if (::poll(&watched[1], 1, static_cast<int>(std::min<int64_t>(left.count(), kMost))) > 0) return;
  }
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
