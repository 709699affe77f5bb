/// Windows as TFLite's operators have them. Thread-safety: pure functions.
#pragma once

#include "compiler/build/windows.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

/// Windows over x [N,C,spatial...]. Throws Error(kInvalidModel) for numbers that are no geometry.
build::Windows windows_over(const NodeContext& node, V x, Padding padding, const std::vector<int64_t>& kernel,
                            std::vector<int64_t> strides, std::vector<int64_t> dilations);

}  // namespace tensormill::frontend::tflite
