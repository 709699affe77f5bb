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

/// The whole body. The byte at `lead` (behind a JSON header of that many bytes) is aligned as a tensor's
/// first one is, and as many bytes are readable after the last one as after a tensor's.
TensorBody read_tensor_body(BodySource& body, size_t lead);

}  // namespace tensormill::http
