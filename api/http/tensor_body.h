/// Bodies that are read into memory: the one place where that memory grows, and where it counts against the
/// budget of requests in flight. Thread-safety: as BodySource.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/body.h"
#include "runtime/base/memory_budget.h"

namespace tensormill::http {

/// Bytes that several may hold, aligned as a tensor is and with as many readable bytes after it.
struct TensorBody {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  size_t size = 0;
  std::string_view text() const { return {reinterpret_cast<const char*>(data), size}; }
};

/// What is left of a body of which `taken` bytes were read. `memory`, which may be null, takes the bytes
/// before they are read: an announced length is refused at once where it does not fit now, and taken as it
/// comes, so that a client that announces much and sends little keeps no memory from others. Throws as
/// BodySource::read and MemoryShare::take.
TensorBody read_tensor_body(BodySource& body, MemoryShare* memory, uint64_t taken = 0);
/// The next `most` bytes, fewer only at the body's end.
TensorBody read_body_part(BodySource& body, MemoryShare* memory, uint64_t most);
/// The next bytes of a body to where they shall be: less than `size` only at the body's end.
TensorBody read_tensor_body(BodySource& body, std::shared_ptr<void> room, size_t size);
/// The whole of a small body.
std::string read_all(BodySource& body, MemoryShare* memory = nullptr);

}  // namespace tensormill::http
