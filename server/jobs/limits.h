/// What a child may use. Passed from parent to child as one argument of text.
/// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/jobs/child_kind.h"

namespace tensormill::jobs {

/// The nice values of children, from what is measured to what nobody waits for.
inline constexpr int kMeasureNice = 0;
inline constexpr int kRunNice = 5;      ///< below serving, which is not a child
inline constexpr int kImportNice = 10;  ///< somebody waits for the upload's answer
inline constexpr int kJobNice = 19;     ///< compiles and the search of a tuning job

/// 0: not limited.
struct ChildLimits {
  /// Private writable memory (RLIMIT_DATA) and, by the parent's watch, shared memory; no mapped weights.
  uint64_t data_bytes = 0;
  uint64_t cpu_seconds = 0;  ///< of all threads together
  uint64_t file_bytes = 0;   ///< of any one file that it writes
  uint64_t open_files = 256;
  int nice = kImportNice;
  bool confine = true;                 ///< no privileges, seccomp and Landlock, where the kernel has them
  ChildKind kind = ChildKind::kPlain;  ///< what the walls leave open
  bool require_confinement = false;    ///< without one of the walls that its kind needs it does not work
  uint32_t user = 0;  ///< user and group that it becomes, which takes privileges; 0: the parent's
};

std::string to_text(const ChildLimits& limits);
/// Throws InternalError for a text that to_text did not make.
ChildLimits limits_from_text(std::string_view text);

}  // namespace tensormill::jobs
