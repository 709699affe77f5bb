/// NPZ bytes and named tensors.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "api/services/common.h"

namespace tensormill::endpoints {

/// Throws Error(kInvalidNpz), Error(kTooLarge) when the tensors have more than `max_bytes` together.
services::NamedTensors decode_npz(std::string_view bytes, uint64_t max_bytes);
std::string encode_npz(const services::NamedTensors& tensors);

}  // namespace tensormill::endpoints
