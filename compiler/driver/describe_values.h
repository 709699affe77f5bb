/// What a package says of its inputs and outputs beside their types. Thread-safety: pure functions.
#pragma once

#include <string>
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

/// " N=8 H=32", or "" for a package without free dims.
inline std::string title_of(const std::vector<std::string>& names, const std::vector<int64_t>& dims) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i) text += " " + names[i] + "=" + std::to_string(dims[i]);
  return text;
}

}  // namespace tensormill::driver
