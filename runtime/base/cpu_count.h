/// How many CPUs this process may use.
/// Thread-safety: pure functions of the system's state.
#pragma once

#include <string>
#include <string_view>

namespace tensormill {

/// CPUs that the scheduler may put this process on, or fewer where a control group's quota allows less time
/// than they have: a part of one counts as one. At least 1.
int usable_cores();

/// The CPUs' worth of time that the quotas of a process' control groups leave, rounded up; 0 without a quota.
/// `groups` is the text of /proc/PID/cgroup, `root` where control groups are mounted: of version 2 (cpu.max)
/// or 1 (cpu/cpu.cfs_quota_us). Each group above the process' own counts as well. What cannot be read limits
/// nothing.
int quota_cores(const std::string& root, std::string_view groups);

}  // namespace tensormill
