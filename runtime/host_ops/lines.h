/// Rows along one axis of a tensor. Thread-safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/shape.h"

namespace tensormill::host_ops {

/// Element i of row (outer, inner) is at (outer * extent + i) * inner_count + inner.
struct Lines {
  int64_t outer = 1, extent = 1, inner = 1;

  Lines(const Shape& shape, size_t axis) : extent(shape[axis]) {
    for (size_t d = 0; d < axis; ++d) outer *= shape[d];
    for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  }
};

}  // namespace tensormill::host_ops
