#include "compiler/build/windows.h"

#include <algorithm>
#include <utility>

#include "compiler/build/compose.h"

namespace tensormill::build {

ir::SymShape same_pads(const ir::SymShape& spatial, const Windows& windows) {
  ir::SymShape pads(2 * spatial.size(), 0);
  for (size_t d = 0; d < spatial.size(); ++d) {
    const ir::SymInt outputs = ceildiv(spatial[d], windows.strides[d]);
    const ir::SymInt reach = (windows.kernel[d] - 1) * windows.dilations[d] + 1;
    const ir::SymInt total = max((outputs - 1) * windows.strides[d] + reach - spatial[d], 0);
    pads[d] = windows.upper ? floordiv(total, 2) : total - floordiv(total, 2);
    pads[d + spatial.size()] = total - pads[d];
  }
  return pads;
}

namespace {

/// The windows' part of x along spatial axis `d`, in front of and behind which `wide` elements are padded.
/// Where it starts follows from the extent: what a run works out, since of an extent that is a quotient
/// itself it may be no formula.
ir::ValueId part_under_windows(OpBuilder& builder, ir::ValueId x, const Windows& windows, size_t d,
                               int64_t extent, int64_t wide) {
  Compose c(builder);
  const auto number = [&](int64_t value) { return c.dims({value}, {1}); };
  const int64_t stride = windows.strides[d], reach = (windows.kernel[d] - 1) * windows.dilations[d] + 1;
  const int64_t under = (extent + stride - 1) / stride * stride - stride + reach;
  const ir::ValueId given = number(extent);
  const ir::ValueId steps = c.div(c.add(given, number(stride - 1)), number(stride));
  const ir::ValueId needed = c.add(c.mul(steps, number(stride)), number(reach - stride));
  const ir::ValueId total = c.binary("max", c.sub(needed, given), number(0));
  const ir::ValueId before = c.div(windows.upper ? total : c.add(total, number(1)), number(2));
  const ir::ValueId places = c.add(c.iota(under), c.sub(number(wide), before));
  return c.gather(x, places, static_cast<int64_t>(d) + 2);
}

}  // namespace

// More is padded than is needed and the rest cut off, so that the nodes are of one form whatever the pads
// are.
ir::ValueId padded_for(OpBuilder& builder, ir::ValueId x, Windows& windows, double value, bool is_one_form) {
  if (!windows.symbolic_pads.empty()) {
    const size_t dims = windows.kernel.size();
    const ir::SymShape given = std::exchange(windows.symbolic_pads, {});
    ir::SymShape all(2 * (dims + 2), 0);
    std::copy_n(given.begin(), dims, all.begin() + 2);
    std::copy_n(given.begin() + static_cast<std::ptrdiff_t>(dims), dims,
                all.begin() + static_cast<std::ptrdiff_t>(dims) + 4);
    return builder.add("pad", {x}, {{"pads", all}, {"mode", std::string("constant")}, {"value", value}});
  }
  if (!windows.same || !is_one_form) return x;
  const ir::SymShape shape = builder.type(x).shape;
  const size_t rank = windows.kernel.size();
  std::vector<int64_t> pads(2 * shape.size(), 0);
  std::vector<int64_t> wide(rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    const bool is_fixed = windows.strides[d] == 1;
    wide[d] = windows.kernel[d] * windows.dilations[d] + windows.strides[d];
    pads[d + 2] = is_fixed ? windows.pads[d] : wide[d];
    pads[d + 2 + shape.size()] = is_fixed ? windows.pads[d + rank] : wide[d];
  }
  x = builder.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", value}});
  for (size_t d = 0; d < rank; ++d) {
    if (windows.strides[d] != 1) x = part_under_windows(builder, x, windows, d, shape[d + 2], wide[d]);
  }
  windows.pads.assign(2 * rank, 0);
  return x;
}

}  // namespace tensormill::build
