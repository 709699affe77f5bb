/// Memory of an executor that grows while a run goes on: what the iterations of a loop append, and values of
/// which each iteration decides how large they are. It is kept for the next run. Thread-safety: of one
/// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

namespace tensormill::host_ops {

class GrowingBuffers {
public:
  static constexpr int64_t kMostBuffers = 4096;

  /// All buffers together; what is there already stays.
  void set_limit(int64_t bytes) { limit_ = bytes; }
  /// What they take, with what they have to grow into.
  int64_t capacity() const;
  /// The buffer's bytes from `offset`, which is within it, on are these. Throws Error(kMemoryBudget) past the
  /// limit; then nothing has changed.
  void write(int64_t buffer, size_t offset, std::span<const std::byte> bytes);
  /// Until the next write. A buffer that nothing was written to is empty.
  std::span<const std::byte> bytes(int64_t buffer) const;
  void clear() { buffers_.clear(); }

private:
  struct Buffer {
    std::unique_ptr<std::byte[]> data;
    size_t size = 0, capacity = 0;
  };
  void reserve(Buffer& buffer, size_t size);

  std::map<int64_t, Buffer> buffers_;
  int64_t limit_ = INT64_MAX;
};

}  // namespace tensormill::host_ops
