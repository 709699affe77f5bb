/// Constants in another order of their axes, made where they are read, so that no graph does it.
/// Thread-safety: pure functions.
#pragma once

#include "runtime/base/tensor.h"

namespace tensormill::build {

/// x with axis perm[i] as its axis i; elements have 1, 2, 4 or 8 bytes.
Tensor transposed(const Tensor& x, const Shape& perm);

}  // namespace tensormill::build
