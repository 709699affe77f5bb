#include "runtime/host_ops/growing_buffers.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/base/error.h"

namespace tensormill::host_ops {

int64_t GrowingBuffers::capacity() const {
  int64_t bytes = 0;
  for (const auto& [number, buffer] : buffers_) bytes += static_cast<int64_t>(buffer.capacity);
  return bytes;
}

void GrowingBuffers::reserve(Buffer& buffer, size_t size) {
  if (size <= buffer.capacity) return;
  // While it is copied there are both.
  const int64_t others = capacity();
  const auto fits = [&](size_t bytes) {
    return others <= limit_ && bytes <= static_cast<size_t>(limit_ - others);
  };
  size_t larger = std::max(size, buffer.capacity * 2);
  if (!fits(larger)) larger = size;
  if (!fits(larger)) {
    throw Error(ErrorCode::kMemoryBudget, "what the iterations so far have made is " + std::to_string(size) +
                                              " bytes, for which there is no memory: the run may take " +
                                              std::to_string(limit_) + " for such values, and has taken " +
                                              std::to_string(others));
  }
  auto data = std::make_unique_for_overwrite<std::byte[]>(larger);
  if (buffer.size != 0) std::memcpy(data.get(), buffer.data.get(), buffer.size);
  buffer.data = std::move(data);
  buffer.capacity = larger;
}

void GrowingBuffers::write(int64_t buffer, size_t offset, std::span<const std::byte> bytes) {
  if (buffer < 0 || buffer >= kMostBuffers)
    throw Error(ErrorCode::kInvalidPackage, "there is no growing buffer " + std::to_string(buffer));
  Buffer& own = buffers_[buffer];
  if (offset > own.size)
    throw Error(ErrorCode::kInvalidPackage, "byte " + std::to_string(offset) + " is not the end of the " +
                                                std::to_string(own.size) + " bytes before it");
  own.size = std::min(own.size, offset);
  reserve(own, offset + bytes.size());
  if (!bytes.empty()) std::memcpy(own.data.get() + offset, bytes.data(), bytes.size());
  own.size = offset + bytes.size();
}

std::span<const std::byte> GrowingBuffers::bytes(int64_t buffer) const {
  const auto found = buffers_.find(buffer);
  if (found == buffers_.end()) return {};
  return {found->second.data.get(), found->second.size};
}

}  // namespace tensormill::host_ops
