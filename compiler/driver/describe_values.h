/// What a package says of its inputs and outputs beside their types. Thread-safety: pure function.
#pragma once

#include <vector>

#include "compiler/ir/variants.h"
#include "runtime/package/metadata.h"

namespace tensormill::driver {

/// Sets what the model says of `ports`, by their names; a port that is of real numbers itself stands for
/// none.
inline void describe_values(const ir::Variants& variants, std::vector<package::TensorInfo>& ports) {
  for (package::TensorInfo& port : ports) {
    const auto scale = variants.quantizations.find(port.name);
    if (scale != variants.quantizations.end() && is_integer(port.dtype)) port.quantization = scale->second;
    const auto said = variants.notes.find(port.name);
    if (said != variants.notes.end()) port.notes = said->second;
  }
}

}  // namespace tensormill::driver
