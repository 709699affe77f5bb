/// Random numbers that are a function of a key and a position: Philox4x32 with ten rounds (Salmon, Moraes,
/// Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"). Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace tensormill::frontend::onnx {

/// The four words of block `counter` under `key`.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// The numbers of one key by their position, in any order.
class RandomSequence {
public:
  explicit RandomSequence(uint64_t key)
      : key_{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)} {}
  /// In [0, 1): a multiple of 2^-24, which float32 holds.
  double uniform(int64_t position) const;
  /// Of mean 0 and deviation 1 (Box, Muller 1958).
  double normal(int64_t position) const;

private:
  std::array<uint32_t, 4> words(int64_t position) const;
  std::array<uint32_t, 2> key_;
};

}  // namespace tensormill::frontend::onnx
