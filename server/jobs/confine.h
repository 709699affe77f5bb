/// The walls around a child, put up by the child itself before it opens anything from a stranger.
/// Thread-safety: call once, before the process has other threads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/jobs/limits.h"

namespace tensormill::jobs {

/// What really holds: a kernel may lack a wall.
struct Confinement {
  bool memory_limit = false;  ///< not under a sanitizer, whose shadow is private memory
  bool seccomp = false;
  int landlock = 0;   ///< version of its interface; 0: none
  uint32_t user = 0;  ///< that it has become; 0: the parent's

  bool operator==(const Confinement&) const = default;
};

/// "memory_limit=1 seccomp=1 landlock=7 user=65534"
std::string to_text(const Confinement& confinement);
/// Throws InternalError for a text that to_text did not make.
Confinement confinement_from_text(std::string_view text);
/// The wall that a child of that kind cannot do without and lacks: "seccomp", or "landlock" where it may open
/// files at all. Empty: none.
std::string missing_wall(ChildKind kind, const Confinement& confinement);

class ChildCgroups;

/// What a server asks of all its children, and hears of them.
struct ChildPolicy {
  bool require_confinement = false;
  uint32_t user = 0;  ///< see usable_child_user
  /// Called for each child once its walls are up, on the thread that polls it.
  std::function<void(ChildKind kind, const Confinement& confinement)> on_confined = {};
  /// Where there are groups to make: each child with a bound of memory gets one.
  std::shared_ptr<ChildCgroups> cgroups = {};
};

/// `wanted`, where this process may make its children that user, give them folders, and end them: where it is
/// root and has those capabilities. Else 0.
uint32_t usable_child_user(uint32_t wanted);
/// What the kernel offers to a child under `policy`; nothing is put up.
Confinement expected_confinement(const ChildPolicy& policy);

/// Gives `process` (0: the caller) that nice value unless it has a higher one already: raising a priority
/// takes a privilege, and where the server itself runs below `nice` its children stay there. A process that
/// has ended, or has become another user, is left alone.
void lower_priority(pid_t process, int nice);

/// Sets the resource limits, no core dumps, low priority; becomes the user that is asked for, else gives up
/// all capabilities; death with the parent, no_new_privs, with Landlock no file by name but in the current
/// folder where the kind makes files, and a seccomp filter that lets the kind's calls pass
/// (system_calls.def). Throws Error(kIo) when a limit cannot be set, Error(kNotSupported) when a wall that is
/// required is missing; else a missing one is reported, not an error.
Confinement confine(const ChildLimits& limits);

}  // namespace tensormill::jobs
