/// The child's side: what the hidden subcommands of the own binary run.
/// Descriptors of a child: 0 is /dev/null; 1 and 2 the job's log; kLifeLineFd ends when the parent is gone or
/// wants an end; kChannelFd takes lines of JSON to the parent; kFirstInheritedFd … are what the parent
/// passed, in its order. Thread-safety: a ChildChannel may be used by many threads.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/jobs/confine.h"

namespace tensormill::jobs {

inline constexpr int kLifeLineFd = 3;
inline constexpr int kChannelFd = 4;
inline constexpr int kFirstInheritedFd = 5;

/// Exit codes of a child; anything else is a crash.
inline constexpr int kExitOk = 0;
inline constexpr int kExitUserError = 10;
inline constexpr int kExitInternalError = 11;
inline constexpr int kExitOutOfMemory = 12;
inline constexpr int kExitParentGone = 13;

class ChildChannel {
public:
  explicit ChildChannel(int fd) : fd_(fd) {}
  /// Sends {"type":"progress","data":…}; `json` is one JSON value without a line feed.
  void progress(std::string_view json) { event("progress", json); }
  /// Sends an event of another type ("trial", "log" …).
  void event(std::string_view type, std::string_view json);

private:
  int fd_;
  std::mutex mutex_;
};

/// The work of a child: gets the arguments that the parent put into ChildSpec, returns its result as JSON.
using ChildBody = std::function<std::string(ChildChannel& channel, std::span<const std::string> arguments)>;

/// Runs the child from main with main's arguments (program, subcommand, limits, the rest): calls `prepare`,
/// which loads libraries that the work finds by name and must parse nothing of a stranger's, confines itself,
/// watches the parent, runs `body`, reports its result or error, and ends the process without running
/// destructors of static objects. Never returns.
[[noreturn]] int run_child(int argc, char** argv, const ChildBody& body,
                           const std::function<void()>& prepare = {});

}  // namespace tensormill::jobs
