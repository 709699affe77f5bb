#include "runtime/host_ops/fingerprint.h"

#include <bit>
#include <cstring>
#include <utility>

namespace tensormill::host_ops {

namespace {

using Pair = std::pair<uint64_t, uint64_t>;

// FarmHash's own constants: primes between 2^63 and 2^64.
constexpr uint64_t kFirst = 0xc3a5c85c97cb3127, kSecond = 0xb492b66fbe98f273, kThird = 0x9ae16a3b2f90404f;

template <typename T>
uint64_t number_at(const char* bytes) {
  T value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}
uint64_t word(const char* bytes) { return number_at<uint64_t>(bytes); }

uint64_t turned(uint64_t value, int bits) { return std::rotr(value, bits); }
uint64_t folded(uint64_t value) { return value ^ (value >> 47); }

uint64_t mixed(uint64_t u, uint64_t v, uint64_t factor) {
  const uint64_t a = folded((u ^ v) * factor);
  return folded((v ^ a) * factor) * factor;
}

uint64_t of_16(const char* s, uint64_t size) {
  const uint64_t factor = kThird + size * 2;
  if (size >= 8) {
    const uint64_t a = word(s) + kThird, b = word(s + size - 8);
    return mixed(turned(b, 37) * factor + a, (turned(a, 25) + b) * factor, factor);
  }
  if (size >= 4)
    return mixed(size + (number_at<uint32_t>(s) << 3), number_at<uint32_t>(s + size - 4), factor);
  if (size == 0) return kThird;
  const uint64_t a = number_at<uint8_t>(s), b = number_at<uint8_t>(s + size / 2),
                 c = number_at<uint8_t>(s + size - 1);
  return folded(((a + (b << 8)) * kThird) ^ ((size + (c << 2)) * kFirst)) * kThird;
}

uint64_t of_32(const char* s, uint64_t size) {
  const uint64_t factor = kThird + size * 2;
  const uint64_t a = word(s) * kSecond, b = word(s + 8), c = word(s + size - 8) * factor,
                 d = word(s + size - 16) * kThird;
  return mixed(turned(a + b, 43) + turned(c, 30) + d, a + turned(b + kThird, 18) + c, factor);
}

uint64_t of_64(const char* s, uint64_t size) {
  const uint64_t factor = kThird + size * 2;
  const uint64_t a = word(s) * kThird, b = word(s + 8), c = word(s + size - 8) * factor,
                 d = word(s + size - 16) * kThird;
  const uint64_t y = turned(a + b, 43) + turned(c, 30) + d;
  const uint64_t z = mixed(y, a + turned(b + kThird, 18) + c, factor);
  const uint64_t e = word(s + 16) * factor, f = word(s + 24);
  const uint64_t g = (y + word(s + size - 32)) * factor, h = (z + word(s + size - 24)) * factor;
  return mixed(turned(e + f, 43) + turned(g, 30) + h, e + turned(f + a, 18) + g, factor);
}

Pair of_block(const char* s, uint64_t a, uint64_t b) {
  a += word(s);
  b = turned(b + a + word(s + 24), 21);
  const uint64_t c = a;
  a += word(s + 8) + word(s + 16);
  b += turned(a, 44);
  return {a + word(s + 24), b + c};
}

}  // namespace

uint64_t fingerprint64(std::string_view bytes) {
  const char* s = bytes.data();
  const uint64_t size = bytes.size();
  if (size <= 16) return of_16(s, size);
  if (size <= 32) return of_32(s, size);
  if (size <= 64) return of_64(s, size);
  constexpr uint64_t kSeed = 81;
  uint64_t x = kSeed * kThird + word(s), y = kSeed * kSecond + 113, z = folded(y * kThird + 113) * kThird;
  Pair v{0, 0}, w{0, 0};
  const auto step = [&](uint64_t factor, uint64_t times) {
    x = turned(x + y + v.first + word(s + 8), 37) * factor;
    y = turned(y + v.second + word(s + 48), 42) * factor;
    x ^= w.second * times;
    y += v.first * times + word(s + 40);
    z = turned(z + w.first, 33) * factor;
    v = of_block(s, v.second * factor, x + w.first);
    w = of_block(s + 32, z + w.second, y + word(s + 16));
    std::swap(z, x);
  };
  const uint64_t rest = (size - 1) & 63;
  for (const char* end = s + (size - 1) / 64 * 64; s != end; s += 64) step(kSecond, 1);
  // The last 64 bytes, some of them once more.
  s += rest - 63;
  w.first += rest;
  v.first += w.first;
  w.first += v.first;
  const uint64_t factor = kSecond + ((z & 0xff) << 1);
  step(factor, 9);
  return mixed(mixed(v.first, w.first, factor) + folded(y) * kFirst + z,
               mixed(v.second, w.second, factor) + x, factor);
}

namespace {

/// The bytes behind the last whole word, the first one lowest.
uint64_t rest_of(std::string_view bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + bytes.size() / 8 * 8, bytes.size() % 8);
  return value;
}

class SipState {
public:
  explicit SipState(const std::array<uint64_t, 2>& key)
      : v_{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
           key[1] ^ 0x7465646279746573} {}
  void add(uint64_t bytes) {
    v_[3] ^= bytes;
    mix(2);
    v_[0] ^= bytes;
  }
  uint64_t end() {
    v_[2] ^= 0xff;
    mix(4);
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

private:
  void half(size_t a, size_t b, int bits) {
    v_[a] += v_[b];
    v_[b] = std::rotl(v_[b], bits) ^ v_[a];
  }
  void mix(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      half(0, 1, 13);
      v_[0] = std::rotl(v_[0], 32);
      half(2, 3, 16);
      half(0, 3, 21);
      half(2, 1, 17);
      v_[2] = std::rotl(v_[2], 32);
    }
  }
  std::array<uint64_t, 4> v_;
};

}  // namespace

uint64_t keyed_hash(std::string_view bytes, const std::array<uint64_t, 2>& key) {
  SipState state(key);
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8) state.add(word(bytes.data() + at));
  state.add(uint64_t{bytes.size()} << 56 | rest_of(bytes));
  return state.end();
}

uint64_t murmur_hash(std::string_view bytes, uint64_t seed) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  uint64_t hash = seed ^ (bytes.size() * kFactor);
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8)
    hash = (hash ^ (folded(word(bytes.data() + at) * kFactor) * kFactor)) * kFactor;
  if (bytes.size() % 8 != 0) hash = (hash ^ rest_of(bytes)) * kFactor;
  return folded(folded(hash) * kFactor);
}

}  // namespace tensormill::host_ops
