/// Bodies that are read to where their tensors stay. Thread-safety: as BodySource.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "api/http/body.h"

namespace tensormill::http {

struct TensorBody {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  size_t size = 0;
  std::string_view text() const { return {reinterpret_cast<const char*>(data), size}; }
};

/// What is left of a body of which `taken` bytes were read: aligned as a tensor is, and with as many readable
/// bytes after it.
TensorBody read_tensor_body(BodySource& body, size_t taken = 0);
/// The next bytes of a body to where they shall be: less than `size` only at the body's end.
TensorBody read_tensor_body(BodySource& body, std::shared_ptr<void> room, size_t size);

}  // namespace tensormill::http
