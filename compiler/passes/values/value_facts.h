/// What is known of a value's elements before it is computed. Each is a bound that holds for every input.
/// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/ir/graph.h"

namespace tensormill::passes {

struct Interval {
  double low = 0, high = 0;
  double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
};

/// Sums of float32 that add up to it at most in magnitude are exact where their terms are whole.
inline constexpr double kExactInFloat = 16777216;  // 2^24

/// Between which integers the elements of an integer tensor of 32 bits at most lie, as far as narrow types,
/// constants and differences tell; of int32, for which no step can wrap around.
std::optional<Interval> interval_of(const ir::Graph& graph, ir::ValueId id);

/// Whether every element of a float tensor is a whole number, infinite or a NaN: what is rounded, widened
/// integers, constants, and sums and differences of those (in which rounding takes no whole number off them).
bool is_whole(const ir::Graph& graph, ir::ValueId id);

}  // namespace tensormill::passes
