/// Hashes of strings that never change: models are trained on them. Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tensormill::host_ops {

/// FarmHash's Fingerprint64 (github.com/google/farmhash).
uint64_t fingerprint64(std::string_view bytes);
/// SipHash-2-4 (Aumasson, Bernstein 2012).
uint64_t keyed_hash(std::string_view bytes, const std::array<uint64_t, 2>& key);
/// MurmurHash64A (github.com/aappleby/smhasher).
uint64_t murmur_hash(std::string_view bytes, uint64_t seed);

}  // namespace tensormill::host_ops
