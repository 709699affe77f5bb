/// The attributes of windows that move over a map: of convolutions and pools. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/frontend/onnx/converter.h"

namespace tensormill::frontend::onnx {

/// Larger numbers are no geometry; below it products of two stay inside int64.
inline constexpr int64_t kMaxWindowNumber = int64_t{1} << 30;

struct Windows {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;  ///< begins, then ends
  bool same = false;          ///< pads follow from the extents
  bool upper = false;         ///< then: the odd pad goes to the end
};

/// Refuses an attribute of another length.
void check_length(const NodeContext& context, const char* name, const std::vector<int64_t>& values,
                  size_t length);
/// The node's strides, dilations and pads, over a map of `shape` [N,C,spatial...].
Windows read_windows(const NodeContext& context, const Shape& shape, std::vector<int64_t> kernel);

}  // namespace tensormill::frontend::onnx
