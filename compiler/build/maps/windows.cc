#include "compiler/build/maps/windows.h"

#include <algorithm>
#include <utility>

namespace tensormill::build {

namespace {

/// Begins, then ends.
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

}  // namespace

void pad_same(Windows& windows, const ir::SymShape& map, bool upper) {
  windows.same = true;
  windows.upper = upper;
  const ir::SymShape pads = same_pads(ir::SymShape(map.begin() + 2, map.end()), windows);
  if (pads.is_constant()) {
    windows.pads = pads.hints();
  } else {
    windows.pads.assign(pads.size(), 0);
    windows.symbolic_pads = pads;
  }
}

ir::ValueId padded_for(OpBuilder& builder, ir::ValueId x, Windows& windows, double value) {
  if (windows.symbolic_pads.empty()) return x;
  const size_t dims = windows.kernel.size();
  const ir::SymShape given = std::exchange(windows.symbolic_pads, {});
  ir::SymShape all(2 * (dims + 2), 0);
  std::copy_n(given.begin(), dims, all.begin() + 2);
  std::copy_n(given.begin() + static_cast<std::ptrdiff_t>(dims), dims,
              all.begin() + static_cast<std::ptrdiff_t>(dims) + 4);
  return builder.add("pad", {x}, {{"pads", all}, {"mode", std::string("constant")}, {"value", value}});
}

}  // namespace tensormill::build
