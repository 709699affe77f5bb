/// Pipes between a process and its children, and how one is written to that may never be read. Thread-safety:
/// the functions may be called from any thread; a pipe is written to by one thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "runtime/base/file.h"

namespace tensormill::jobs {

/// Both ends close on exec.
struct Pipe {
  FileDescriptor read, write;
};

/// Throws Error(kIo).
Pipe make_pipe();
/// Of which a child reads: its parent's end does not block, so that write_pipe() can bound what it waits.
Pipe make_pipe_to_child();

enum class Written {
  kAll,
  kGone,  ///< nobody reads any more; the process ignores SIGPIPE, or it ends by that
  kLate,  ///< not all was taken by the deadline, or it cannot be waited for; a part may have been
};

inline constexpr std::chrono::steady_clock::time_point kNoDeadline =
    std::chrono::steady_clock::time_point::max();

/// Writes all of `bytes`. While the pipe is full, `alive` is called ten times a second; what that throws
/// leaves, and a part of the bytes may have been taken.
Written write_pipe(
    int fd, std::string_view bytes, std::chrono::steady_clock::time_point deadline,
    const std::function<void()>& alive = [] {});

}  // namespace tensormill::jobs
