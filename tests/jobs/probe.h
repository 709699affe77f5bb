/// What the children that probe the filter of system calls agree on with the tests.
#pragma once

#include <cerrno>
#include <cstdint>

namespace tensormill::jobs {

/// The sixth argument of a call that is a probe.
inline constexpr uint64_t kProbe = 0x7e57ab1e5ca1ab1eull;
/// The errno of a probe that the child's filter let pass. No call gives it.
inline constexpr int kPassed = EDOTDOT;

}  // namespace tensormill::jobs
