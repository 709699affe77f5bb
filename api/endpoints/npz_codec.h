/// NPZ bytes and named tensors.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "api/http/body.h"
#include "api/services/common.h"

namespace tensormill::endpoints {

/// A tensor that lies in the archive as memory wants it stays there, aligned to its elements, and holds
/// the bytes. Throws Error(kInvalidNpz), Error(kTooLarge) when they have more than `max_bytes` in all.
services::NamedTensors decode_npz(const http::SharedBytes& bytes, uint64_t max_bytes);
std::string encode_npz(const services::NamedTensors& tensors);

}  // namespace tensormill::endpoints
