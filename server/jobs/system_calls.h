/// The filter of a child's system calls: the rows of system_calls.def. Thread-safety: pure functions, but for
/// filter_system_calls.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "server/jobs/child_kind.h"

namespace tensormill::jobs {

/// Of one argument: (argument & mask) == value, or, where `at_most`, argument <= value.
struct CallCondition {
  unsigned argument = 0;
  uint64_t mask = ~uint64_t{0};
  uint64_t value = 0;
  bool at_most = false;
};

struct CallRule {
  std::string_view name;
  int number = 0;                         ///< negative: this machine has no such call
  unsigned needs = 0;                     ///< ChildNeed bits, of which a kind must have one; 0: none
  std::vector<CallCondition> conditions;  ///< all must hold
  bool absent = false;                    ///< answered with ENOSYS
};

/// The table, for the calling process.
std::vector<CallRule> call_rules();

/// Whether this kernel takes filters at all.
bool has_call_filters();
/// From now on no thread of this process gets from the kernel what the kind may not ask: EPERM, or the end of
/// the process for a call by another interface than the machine's own. no_new_privs must be set. False when
/// the kernel takes no filter.
bool filter_system_calls(ChildKind kind);

}  // namespace tensormill::jobs
