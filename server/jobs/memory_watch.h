/// What a child holds beyond its private memory, on which the kernel has a limit of its own (RLIMIT_DATA):
/// shared anonymous memory, memory files, growth of those that it was given, tables of pages; what is swapped
/// out counts as what is in memory. Thread-safety: belongs to one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/file.h"

namespace tensormill::jobs {

class MemoryWatch {
public:
  /// `given`: the descriptors that the child gets, borrowed until the constructor has returned. What they
  /// hold now is not the child's. `user`: that the child becomes, as which this process may look; 0: its own.
  MemoryWatch(uint64_t limit_bytes, std::span<const int> given, uint32_t user = 0);
  /// What the given files hold now is not the child's.
  void forgive_given() { given_at_start_ = given_bytes(); }
  /// Whether the process holds more than the limit, private memory included. False when it has ended.
  bool is_past(pid_t process) const;
  /// Bytes that count.
  uint64_t held(pid_t process) const;

private:
  using FileId = std::pair<uint64_t, uint64_t>;  // device, inode
  uint64_t given_bytes() const;
  uint64_t own_memory_files(pid_t process) const;

  uint64_t limit_bytes_;
  uint32_t user_;
  std::vector<FileDescriptor> given_;  ///< memory files
  std::set<FileId> given_ids_;
  uint64_t given_at_start_ = 0;
};

}  // namespace tensormill::jobs
