/// The geometry of sliding windows, shared by convolutions and pools.
/// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/ops/type_rules.h"

namespace tensormill::ops {

/// One entry per spatial dimension. The kernel's extents are numbers, or SymInts.
template <typename Extent>
struct BasicWindow {
  ir::CheckedList<Extent> kernel;
  ir::Ints strides, dilations;
  ir::Ints pads_begin, pads_end;
  size_t rank() const { return kernel.size(); }
  /// Distance from the first to the last tap in dimension d, plus one.
  Extent reach(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};
using Window = BasicWindow<int64_t>;
using SymWindow = BasicWindow<ir::SymInt>;

/// Attributes strides, dilations (1 each when missing) and pads (all begins, then all ends; 0 when missing).
/// That a symbolic kernel has taps is demanded.
Window read_window(const ir::Attrs& attrs, const Shape& kernel);
SymWindow read_window(const ir::Attrs& attrs, const ir::SymShape& kernel);

/// Extents of the output over `input` spatial extents: floor((in + pads - reach) / stride) + 1, or with
/// `ceil_mode` rounded up, less windows that would start in the padding at the end. A window larger than the
/// padded input is an error.
ir::SymShape window_output(const SymWindow& window, const ir::SymShape& input, bool ceil_mode);

/// shape[2..]
Shape spatial_of(const Shape& shape);
ir::SymShape spatial_of(const ir::SymShape& shape);

}  // namespace tensormill::ops
