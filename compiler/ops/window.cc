#include "compiler/ops/window.h"

namespace tensormill::ops {

Window read_window(const ir::Attrs& attrs, std::vector<int64_t> kernel) {
  Window window;
  const size_t rank = kernel.size();
  for (const int64_t extent : kernel) {
    if (extent < 1 || extent > kMaxWindow) {
      fail("the kernel has extent " + std::to_string(extent) + ", expected 1 to " +
           std::to_string(kMaxWindow));
    }
  }
  window.kernel = std::move(kernel);
  window.strides = attr_ints(attrs, "strides", rank, 1, 1, kMaxWindow);
  window.dilations = attr_ints(attrs, "dilations", rank, 1, 1, kMaxWindow);
  const std::vector<int64_t> pads = attr_ints(attrs, "pads", 2 * rank, 0, 0, kMaxWindow);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  window.pads_begin.assign(pads.begin(), middle);
  window.pads_end.assign(middle, pads.end());
  return window;
}

Shape window_output(const Window& window, const Shape& input, bool ceil_mode) {
  Shape output;
  for (size_t d = 0; d < window.rank(); ++d) {
    const int64_t padded = input[d] + window.pads_begin[d] + window.pads_end[d];
    const int64_t reach = window.reach(d);
    // The only window of ceil_mode may reach past the end, too, by less than a stride.
    const bool is_partial = ceil_mode && reach > padded && reach - padded < window.strides[d] &&
                            input[d] + window.pads_begin[d] > 0;
    if (is_partial) {
      output.push_back(1);
      continue;
    }
    if (reach > padded) {
      fail("the window reaches over " + std::to_string(reach) + " elements in spatial dimension " +
           std::to_string(d) + ", the padded input has " + std::to_string(padded));
    }
    int64_t extent = (padded - reach) / window.strides[d] + 1;
    const bool rest = (padded - reach) % window.strides[d] != 0;
    if (ceil_mode && rest && extent * window.strides[d] < input[d] + window.pads_begin[d]) ++extent;
    output.push_back(extent);
  }
  return output;
}

Shape spatial_of(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

}  // namespace tensormill::ops
