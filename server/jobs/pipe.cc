#include "server/jobs/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "runtime/base/error.h"

namespace tensormill::jobs {

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno(errno, "cannot make a pipe");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

Pipe make_pipe_to_child() {
  Pipe pipe = make_pipe();
  if (::fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK) != 0) throw_errno(errno, "cannot set up a pipe");
  return pipe;
}

Written write_pipe(int fd, std::string_view bytes, std::chrono::steady_clock::time_point deadline,
                   const std::function<void()>& alive) {
  using std::chrono::milliseconds;
  constexpr milliseconds kLook{100};
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Written::kGone;
    alive();
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Written::kLate;
    pollfd watched{fd, POLLOUT, 0};
    const milliseconds wait = std::min(left, kLook);
    if (::poll(&watched, 1, static_cast<int>(wait.count())) < 0 && errno != EINTR) return Written::kLate;
  }
  return Written::kAll;
}

}  // namespace tensormill::jobs
