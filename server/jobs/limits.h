/// What a child may use. Passed from parent to child as one argument of text.
/// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensormill::jobs {

/// 0: not limited.
struct ChildLimits {
  uint64_t data_bytes = 0;   ///< private writable memory (RLIMIT_DATA: mapped weights do not count)
  uint64_t cpu_seconds = 0;  ///< of all threads together
  uint64_t file_bytes = 0;   ///< of any one file that it writes
  uint64_t open_files = 256;
  int nice = 10;        ///< below serving
  bool confine = true;  ///< no_new_privs, seccomp and Landlock, where the kernel has them
  bool files = true;    ///< false: it opens no file at all and works on its descriptors
};

std::string to_text(const ChildLimits& limits);
/// Throws InternalError for a text that to_text did not make.
ChildLimits limits_from_text(std::string_view text);

}  // namespace tensormill::jobs
