/// Operators of TensorFlow without a converter. Thread-safety: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace tensormill::frontend::tensorflow {

/// Why an operator has no converter, by refused_ops.def and refused_families.def; "" where there is nothing
/// to say but that.
std::string reason_of(std::string_view op);

}  // namespace tensormill::frontend::tensorflow
