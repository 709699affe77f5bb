#include "compiler/build/moves/slices.h"

#include <algorithm>

namespace tensormill::build {

ir::SymInt place_within(const ir::SymInt& at, const ir::SymInt& extent, const ir::SymInt& low,
                        const ir::SymInt& high) {
  // What is far beyond the axis is beyond it, whatever the sum.
  const bool is_front = at >= 0;
  const ir::SymInt wrapped = is_front ? at : max(at, -kMostPlace) + extent;
  return max(min(wrapped, high), low);
}

AxisSlice slice_within(const ir::SymInt& start, const ir::SymInt& end, int64_t step,
                       const ir::SymInt& extent) {
  AxisSlice slice;
  slice.step = step;
  if (step > 0) {
    slice.start = place_within(start, extent, 0, extent);
    const ir::SymInt stop = place_within(end, extent, 0, extent);
    slice.extent = max(floordiv(stop - slice.start - 1, step) + 1, 0);
  } else {
    // ONNX' text has it so; numpy takes nothing then.
    slice.start = min(place_within(start, extent, 0, extent), extent - 1);
    // An end below -extent means "past the first element".
    const ir::SymInt stop = place_within(end, extent, -1, extent - 1);
    slice.extent = max(floordiv(slice.start - stop - 1, -std::max<int64_t>(step, -INT64_MAX)) + 1, 0);
  }
  slice.start = max(slice.start, 0);
  const bool is_empty = slice.extent.is_constant() && slice.extent.hint() == 0;
  if (is_empty) slice = {0, 0, 1};
  return slice;
}

}  // namespace tensormill::build
