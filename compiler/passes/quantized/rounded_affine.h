/// Functions of a byte that are one product, one sum and one rounding. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "compiler/passes/quantized/byte_chains.h"

namespace tensormill::passes {

/// clip(round(q * scale[c] + shift[c]) + offset, low, high) of a byte q and a channel c, half to even.
struct RoundedAffine {
  std::vector<float> scale, shift;  ///< by channel
  double offset = 0;                ///< 0 or 1
  double low = 0, high = 0;         ///< the least and the largest of all results
  double least = 0, most = 0;       ///< of what is clipped

  bool exceeds_low() const { return least < low; }
  bool exceeds_high() const { return most > high; }
};

/// The function as that, where all its results are the same, and whether the product is rounded before the
/// sum or not; else nothing. `dtype` is the one of the byte q; the results are bytes.
std::optional<RoundedAffine> rounded_affine(const ByteFunction& function, DType dtype);

}  // namespace tensormill::passes
