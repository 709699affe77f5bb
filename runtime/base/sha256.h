/// SHA-256 in plain C++ (FIPS 180-4, sections 5 and 6.2): what digests are made with where the system's
/// library is not linked, as in a cross-compiled runtime. About ten times slower than that library.
/// Thread-safety: an object belongs to one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tensormill {

class Sha256 {
public:
  void update(std::string_view bytes);
  /// The digest of all bytes so far; the object is fresh afterwards.
  std::array<uint8_t, 32> finish();

private:
  static constexpr size_t kBlock = 64;
  static constexpr std::array<uint32_t, 8> kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

  void add_block(const uint8_t* block);

  std::array<uint32_t, 8> state_ = kStart;
  std::array<uint8_t, kBlock> pending_{};
  uint64_t size_ = 0;  ///< bytes in all; the last size_ % kBlock of them wait in pending_
};

}  // namespace tensormill
