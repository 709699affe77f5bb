/// Slices whose ends may lie outside of the axis. Thread-safety: pure functions.
#pragma once

#include "compiler/ir/sym_int.h"

namespace tensormill::build {

/// Beyond any extent all places are alike.
inline constexpr int64_t kMostPlace = int64_t{1} << 39;

/// Elements start, start + step ... of an axis.
struct AxisSlice {
  ir::SymInt start = 0;
  ir::SymInt extent = 0;
  int64_t step = 1;
};

/// `at`, from the end where it is negative, within [low, high] of an axis.
ir::SymInt place_within(const ir::SymInt& at, const ir::SymInt& extent, const ir::SymInt& low,
                        const ir::SymInt& high);

/// What numpy's start:end:step takes of an axis of `extent`.
AxisSlice slice_within(const ir::SymInt& start, const ir::SymInt& end, int64_t step,
                       const ir::SymInt& extent);

}  // namespace tensormill::build
