/// Seeded inputs: the same on every machine.
/// Thread-safety: pure functions.
#pragma once

#include <string>

#include "runtime/base/tensor.h"

namespace tensormill::cli {

enum class FillMode : uint8_t { kZeros, kOnes, kRandom };
FillMode parse_fill_mode(const std::string& text);
/// Random: floats uniform in [-1,1), integers in [0,128) cut to the type, bools fair.
Tensor filled_tensor(DType dtype, const Shape& shape, FillMode mode, uint64_t seed);

}  // namespace tensormill::cli
