/// Memory of another process on this machine, out of which inputs are copied and into which outputs are.
/// Thread-safety: all methods from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tensormill::shared {

class ClientMemory {
public:
  ClientMemory() = default;
  virtual ~ClientMemory() = default;
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;
  /// Bytes that may be named, from its beginning.
  virtual uint64_t size() const = 0;
  /// Copies, from byte `at`. Throws Error(kInvalidTensor) where it has become shorter, Error(kIo) for what
  /// the system or the driver refuses.
  virtual void read(uint64_t at, std::span<std::byte> into) const = 0;
  virtual void write(uint64_t at, std::span<const std::byte> from) const = 0;
};

}  // namespace tensormill::shared
