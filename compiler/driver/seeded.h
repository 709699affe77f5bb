/// Seeded values, the same on every machine. Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "compiler/ir/graph.h"

namespace tensormill::driver {

/// splitmix64 (Steele, Lea, Flood 2014): one multiply-xor chain a value.
uint64_t next_random(uint64_t& state);

/// Seeded integers are below this one.
inline constexpr int64_t kSeededIntegers = 4;

/// Values of any type: floats in [-1,1), integers in [0,below), bools. Those of a large tensor repeat, with a
/// period that is no extent. Where `whole`, floats are -2, -1, 1 and 2: sums of their products are exact, and
/// one can divide by them.
Tensor seeded_tensor(const ir::ValueType& type, uint64_t seed, int64_t below = kSeededIntegers,
                     bool whole = false);

}  // namespace tensormill::driver
