/// What a package says of integers that stand for real numbers. Thread-safety: pure function.
#pragma once

#include <vector>

#include "runtime/base/quantization.h"
#include "runtime/package/metadata.h"

namespace tensormill::driver {

/// Sets those of `ports` by their names; a port that is of real numbers itself has none.
inline void describe_quantizations(const Quantizations& quantizations,
                                   std::vector<package::TensorInfo>& ports) {
  for (package::TensorInfo& port : ports) {
    const auto found = quantizations.find(port.name);
    if (found != quantizations.end() && is_integer(port.dtype)) port.quantization = found->second;
  }
}

}  // namespace tensormill::driver
