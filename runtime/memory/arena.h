/// One block of zeroed memory for all that an executor writes. Pages are mapped, not allocated from the heap:
/// they cost nothing until they are touched and go back to the system at once.
/// Thread-safety: belongs to its executor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensormill::memory {

/// Bytes of memory that the machine has.
int64_t machine_memory();

class Arena {
public:
  Arena() = default;
  /// At least `bytes` bytes, page aligned. Throws Error(kMemoryBudget) when the system refuses.
  explicit Arena(int64_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace tensormill::memory
