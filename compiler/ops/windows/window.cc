#include "compiler/ops/windows/window.h"

namespace tensormill::ops {

namespace {

template <typename Extent>
BasicWindow<Extent> window_of(const ir::Attrs& attrs, const std::vector<Extent>& kernel) {
  BasicWindow<Extent> window;
  const size_t rank = kernel.size();
  for (const Extent& each : kernel) {
    const ir::SymInt& extent = each;
    if (!demand(ir::Relation::kLessEqual, 1, extent) || extent.hint() > kMaxWindow) {
      fail("the kernel has extent " + to_string(extent) + ", expected 1 to " + std::to_string(kMaxWindow));
    }
  }
  window.kernel = kernel;
  window.strides = attr_ints(attrs, "strides", rank, 1, 1, kMaxWindow);
  window.dilations = attr_ints(attrs, "dilations", rank, 1, 1, kMaxWindow);
  const ir::Ints pads = attr_ints(attrs, "pads", 2 * rank, 0, 0, kMaxWindow);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  window.pads_begin.assign(pads.begin(), middle);
  window.pads_end.assign(middle, pads.end());
  return window;
}

}  // namespace

Window read_window(const ir::Attrs& attrs, const Shape& kernel) { return window_of(attrs, kernel); }

SymWindow read_window(const ir::Attrs& attrs, const ir::SymShape& kernel) {
  return window_of<ir::SymInt>(attrs, kernel);
}

ir::SymShape window_output(const SymWindow& window, const ir::SymShape& input, bool ceil_mode) {
  ir::SymShape output;
  for (size_t d = 0; d < window.rank(); ++d) {
    const int64_t stride = window.strides[d];
    const ir::SymInt reach = window.reach(d);
    const ir::SymInt begin = input[d] + window.pads_begin[d], padded = begin + window.pads_end[d];
    // The only window of ceil_mode may reach past the end, too, by less than a stride.
    const bool may_pass = ceil_mode && window.pads_end[d] < reach;
    const ir::SymInt least = may_pass ? reach - stride + 1 : reach;
    if ((may_pass && !demand(ir::Relation::kLess, 0, begin)) ||
        !demand(ir::Relation::kLessEqual, least, padded)) {
      fail("the window reaches over " + to_string(reach) + " elements in spatial dimension " +
           std::to_string(d) + ", the padded input has " + to_string(padded));
    }
    const ir::SymInt whole = floordiv(padded - reach, stride) + 1;
    // One more that reaches past the end, where it begins before the padding there.
    const ir::SymInt begun = min(ceildiv(padded - reach, stride) + 1, ceildiv(begin, stride));
    output.push_back(ceil_mode ? max(whole, begun) : whole);
  }
  return output;
}

Shape spatial_of(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }
ir::SymShape spatial_of(const ir::SymShape& shape) { return {shape.begin() + 2, shape.end()}; }

}  // namespace tensormill::ops
