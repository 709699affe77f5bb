/// The walls around a child, put up by the child itself before it opens anything from a stranger.
/// Thread-safety: call once, while the process has no thread that must stay outside.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "server/jobs/limits.h"

namespace tensormill::jobs {

/// What really holds: a kernel may lack a wall.
struct Confinement {
  bool memory_limit = false;  ///< not under a sanitizer, whose shadow is private memory
  bool seccomp = false;
  bool landlock = false;
};

/// Gives `process` (0: the caller) that nice value unless it has a higher one already: raising a priority
/// takes a privilege, and where the server itself runs below `nice` its children stay there. A process that
/// has ended is left alone.
void lower_priority(pid_t process, int nice);

/// Sets the resource limits, no core dumps, low priority, death with the parent, no_new_privs, a seccomp
/// filter (no sockets, no programs, no new processes, no tracing, no privileges: EPERM) and, with Landlock,
/// no file outside the current folder except what `limits.files` forbids altogether. Throws Error(kIo) when a
/// limit cannot be set; a missing seccomp or Landlock is reported, not an error.
Confinement confine(const ChildLimits& limits);

/// "memory_limit=1 seccomp=1 landlock=0"
std::string to_text(const Confinement& confinement);

}  // namespace tensormill::jobs
