/// FarmHash's Fingerprint64 (github.com/google/farmhash), which never changes: models are trained on it.
/// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <string_view>

namespace tensormill::host_ops {

uint64_t fingerprint64(std::string_view bytes);

}  // namespace tensormill::host_ops
