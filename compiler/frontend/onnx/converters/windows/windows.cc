#include "compiler/frontend/onnx/converters/windows/windows.h"

#include <algorithm>
#include <utility>

#include "compiler/build/compose.h"

namespace tensormill::frontend::onnx {

void check_length(const NodeContext& context, const char* name, const std::vector<int64_t>& values,
                  size_t length) {
  if (values.size() == length) return;
  context.invalid(std::string(name) + " has " + std::to_string(values.size()) + " values, expected " +
                  std::to_string(length));
}

Windows read_windows(const NodeContext& context, const ir::SymShape& shape, ir::SymShape kernel) {
  if (shape.size() < 3)
    context.invalid("the input has shape " + to_string(shape) + ", expected [N,C,spatial...]");
  const ir::SymShape spatial(shape.begin() + 2, shape.end());
  const size_t rank = spatial.size();
  Windows windows;
  windows.kernel = std::move(kernel);
  windows.strides = context.ints_attr("strides", std::vector<int64_t>(rank, 1));
  windows.dilations = context.ints_attr("dilations", std::vector<int64_t>(rank, 1));
  if (windows.kernel.size() != rank) check_length(context, "kernel_shape", windows.kernel.hints(), rank);
  check_length(context, "strides", windows.strides, rank);
  check_length(context, "dilations", windows.dilations, rank);
  for (size_t d = 0; d < rank; ++d) {
    const bool has_taps = demand(ir::Relation::kLessEqual, 1, windows.kernel[d]) &&
                          demand(ir::Relation::kLessEqual, windows.kernel[d], kMaxWindowNumber);
    for (int64_t value : {windows.strides[d], windows.dilations[d]}) {
      if (has_taps && value >= 1 && value <= kMaxWindowNumber) continue;
      context.invalid("kernel_shape, strides and dilations must be 1 to " + std::to_string(kMaxWindowNumber));
    }
  }
  const std::string auto_pad = context.string_attr("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    build::pad_same(windows, shape, auto_pad == "SAME_UPPER");
  } else {
    windows.pads = auto_pad == "VALID" ? std::vector<int64_t>(2 * rank, 0)
                                       : context.ints_attr("pads", std::vector<int64_t>(2 * rank, 0));
  }
  check_length(context, "pads", windows.pads, 2 * rank);
  if (std::any_of(windows.pads.begin(), windows.pads.end(),
                  [](int64_t pad) { return pad < 0 || pad > kMaxWindowNumber; }))
    context.invalid("pads must not be negative");
  return windows;
}

Windows read_pool_windows(NodeContext& context, ir::ValueId x) {
  context.require_bound_extents(x, 2);
  const ir::SymShape shape = context.type(x).shape;
  Windows windows = read_windows(context, shape, context.required_ints("kernel_shape"));
  if (windows.same) return windows;
  const bool is_ceil = context.int_attr("ceil_mode", 0) != 0;
  const size_t rank = windows.kernel.size();
  bool is_short = false;
  ir::SymShape pooled(rank);
  for (size_t d = 0; d < rank; ++d) {
    const ir::SymInt stride = windows.strides[d], begin = shape[d + 2] + windows.pads[d];
    const ir::SymInt lacks =
        (windows.kernel[d] - 1) * windows.dilations[d] + 1 - begin - windows.pads[d + rank];
    // The only window of ceil_mode may reach past the end by less than a stride: that is no form of its own.
    if (is_ceil ? lacks < stride && begin > 0 : lacks <= 0) {
      pooled[d] = floordiv(-lacks, stride) + 1;
      if (is_ceil) pooled[d] = max(pooled[d], min(ceildiv(-lacks, stride) + 1, ceildiv(begin, stride)));
      continue;
    }
    pooled[d] = int64_t{-lacks} / windows.strides[d] + 1;
    if (shape[d + 2] == 0 || pooled[d] < 0) return windows;
    is_short = true;
    // What is in the only window, and is not taken, does not matter.
    if (pooled[d] == 0) windows.pads[d + rank] += lacks;
  }
  if (is_short) windows.pooled = std::move(pooled);
  return windows;
}

}  // namespace tensormill::frontend::onnx
