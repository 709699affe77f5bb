/// How run_model (model_step.cc) says the extents of its results: numbers; kOpenExtent for what a run makes
/// them; and, below that, axes of operands. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/base/model_step.h"

namespace tensormill::ops {

inline constexpr int64_t kOpenExtent = -1;

/// `axis` < kMaxTensorRank.
constexpr int64_t extent_of_axis(size_t operand, size_t axis) {
  return kOpenExtent - 1 - static_cast<int64_t>(operand) * kMaxTensorRank - static_cast<int64_t>(axis);
}
/// The operand and the axis of an extent below kOpenExtent.
constexpr std::pair<size_t, size_t> axis_of_extent(int64_t said) {
  const int64_t place = kOpenExtent - 1 - said;
  return {static_cast<size_t>(place / kMaxTensorRank), static_cast<size_t>(place % kMaxTensorRank)};
}

}  // namespace tensormill::ops
