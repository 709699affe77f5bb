#include "runtime/memory/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::memory {

int64_t machine_memory() { return int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE); }

Arena::Arena(int64_t bytes) {
  if (bytes <= 0) return;
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kMemoryBudget, "cannot map an arena of " + std::to_string(bytes) + " bytes");
  }
  // Large pages halve the time of first touch; a refusal changes nothing.
  (void)::madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
}

Arena::~Arena() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(size_));
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace tensormill::memory
