#include "compiler/frontend/onnx/graph/philox.h"

#include <cmath>
#include <numbers>

namespace tensormill::frontend::onnx {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kFirst = 0xD2511F53u, kSecond = 0xCD9E8D57u;
  constexpr uint32_t kFirstStep = 0x9E3779B9u, kSecondStep = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = kFirst * counter[0], b = kSecond * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kFirstStep;
    key[1] += kSecondStep;
  }
  return counter;
}

std::array<uint32_t, 4> RandomSequence::words(int64_t position) const {
  const auto at = static_cast<uint64_t>(position);
  return philox({static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0}, key_);
}

double RandomSequence::uniform(int64_t position) const {
  return static_cast<double>(words(position)[0] >> 8) * 0x1p-24;
}

double RandomSequence::normal(int64_t position) const {
  const std::array<uint32_t, 4> two = words(position);
  // In (0, 1]: the logarithm is finite.
  const double radius = std::sqrt(-2 * std::log((static_cast<double>(two[0]) + 1) * 0x1p-32));
  return radius * std::cos(2 * std::numbers::pi * static_cast<double>(two[1]) * 0x1p-32);
}

}  // namespace tensormill::frontend::onnx
