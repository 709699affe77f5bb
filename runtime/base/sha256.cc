#include "runtime/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tensormill {

namespace {

constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

}  // namespace

void Sha256::add_block(const uint8_t* block) {
  std::array<uint32_t, 64> schedule;
  for (size_t i = 0; i < 16; ++i) schedule[i] = big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t before = schedule[i - 15];
    const uint32_t last = schedule[i - 2];
    const uint32_t sigma0 = std::rotr(before, 7) ^ std::rotr(before, 18) ^ (before >> 3);
    const uint32_t sigma1 = std::rotr(last, 17) ^ std::rotr(last, 19) ^ (last >> 10);
    schedule[i] = schedule[i - 16] + sigma0 + schedule[i - 7] + sigma1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t first = h + sum1 + ((e & f) ^ (~e & g)) + kRound[i] + schedule[i];
    const uint32_t second = sum0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<uint32_t, 8> change = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += change[i];
}

void Sha256::update(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t filled = size_ % kBlock;
    const size_t taken = std::min(bytes.size(), kBlock - filled);
    std::memcpy(pending_.data() + filled, bytes.data(), taken);
    size_ += taken;
    bytes.remove_prefix(taken);
    if (filled + taken == kBlock) add_block(pending_.data());
  }
}

std::array<uint8_t, 32> Sha256::finish() {
  // A one bit, zeros up to 8 bytes before the end of a block, and the length in bits.
  const uint64_t bits = size_ * 8;
  const size_t filled = size_ % kBlock;
  std::array<char, 2 * kBlock> tail{};
  tail[0] = static_cast<char>(0x80);
  const size_t zeros_end = (filled < kBlock - 8 ? kBlock : 2 * kBlock) - 8 - filled;
  for (size_t i = 0; i < 8; ++i) tail[zeros_end + i] = static_cast<char>(bits >> (56 - 8 * i));
  update({tail.data(), zeros_end + 8});
  std::array<uint8_t, 32> digest{};
  for (size_t i = 0; i < 32; ++i) digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  *this = Sha256();
  return digest;
}

}  // namespace tensormill
