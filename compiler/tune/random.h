/// Random numbers that are the same on every machine: splitmix64 (Steele, Lea, Flood 2014).
/// Thread-safety: a generator belongs to one thread.
#pragma once

#include <cstdint>

namespace tensormill::tune {

class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// 0 <= result < count; count >= 1.
  uint64_t below(uint64_t count) { return next() % count; }
  /// 0 <= result < 1.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  uint64_t state_;
};

}  // namespace tensormill::tune
