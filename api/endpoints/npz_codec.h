/// NPZ bytes and named tensors.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "api/http/tensor_body.h"
#include "api/services/common.h"

namespace tensormill::endpoints {

/// A tensor that lies in the archive as memory wants it stays there, aligned to its elements, and holds
/// the bytes; `memory`, which may be null, takes the bytes of the others before they are unfolded. Throws
/// Error(kInvalidNpz), Error(kTooLarge) when they have more than `max_bytes` in all, and as
/// MemoryShare::take.
services::NamedTensors decode_npz(const http::TensorBody& bytes, uint64_t max_bytes, MemoryShare* memory);
std::string encode_npz(const services::NamedTensors& tensors);

}  // namespace tensormill::endpoints
