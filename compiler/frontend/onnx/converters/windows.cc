#include "compiler/frontend/onnx/converters/windows.h"

#include <algorithm>

namespace tensormill::frontend::onnx {

namespace {

/// SAME_UPPER and SAME_LOWER: the output has ceil(in / stride) elements; the odd pad goes to the end or the
/// begin.
std::vector<int64_t> same_pads(const Shape& spatial, const Windows& windows, bool upper) {
  std::vector<int64_t> pads(2 * spatial.size(), 0);
  for (size_t d = 0; d < spatial.size(); ++d) {
    const int64_t outputs = (spatial[d] + windows.strides[d] - 1) / windows.strides[d];
    const int64_t reach = (windows.kernel[d] - 1) * windows.dilations[d] + 1;
    const int64_t total = std::max<int64_t>(0, (outputs - 1) * windows.strides[d] + reach - spatial[d]);
    pads[d] = upper ? total / 2 : total - total / 2;
    pads[d + spatial.size()] = total - pads[d];
  }
  return pads;
}

}  // namespace

void check_length(const NodeContext& context, const char* name, const std::vector<int64_t>& values,
                  size_t length) {
  if (values.size() == length) return;
  context.invalid(std::string(name) + " has " + std::to_string(values.size()) + " values, expected " +
                  std::to_string(length));
}

Windows read_windows(const NodeContext& context, const Shape& shape, std::vector<int64_t> kernel) {
  if (shape.size() < 3)
    context.invalid("the input has shape " + to_string(shape) + ", expected [N,C,spatial...]");
  const Shape spatial(shape.begin() + 2, shape.end());
  const size_t rank = spatial.size();
  Windows windows;
  windows.kernel = std::move(kernel);
  windows.strides = context.ints_attr("strides", std::vector<int64_t>(rank, 1));
  windows.dilations = context.ints_attr("dilations", std::vector<int64_t>(rank, 1));
  check_length(context, "kernel_shape", windows.kernel, rank);
  check_length(context, "strides", windows.strides, rank);
  check_length(context, "dilations", windows.dilations, rank);
  for (size_t d = 0; d < rank; ++d) {
    for (int64_t value : {windows.kernel[d], windows.strides[d], windows.dilations[d]}) {
      if (value >= 1 && value <= kMaxWindowNumber) continue;
      context.invalid("kernel_shape, strides and dilations must be 1 to " + std::to_string(kMaxWindowNumber));
    }
  }
  const std::string auto_pad = context.string_attr("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    windows.same = true;
    windows.upper = auto_pad == "SAME_UPPER";
    windows.pads = same_pads(spatial, windows, windows.upper);
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

}  // namespace tensormill::frontend::onnx
