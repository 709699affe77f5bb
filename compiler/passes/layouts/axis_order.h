/// Orders of axes: axis i of a tensor is axis order[i] of a value. Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "compiler/ir/sym_int.h"

namespace tensormill::passes {

using AxisOrder = std::vector<size_t>;

inline AxisOrder own_order(size_t rank) {
  AxisOrder order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

inline bool is_own(const AxisOrder& order) { return std::is_sorted(order.begin(), order.end()); }

inline AxisOrder inverse_of(const AxisOrder& order) {
  AxisOrder inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = i;
  return inverse;
}

inline ir::SymShape shape_in(const ir::SymShape& shape, const AxisOrder& order) {
  ir::SymShape made;
  for (const size_t axis : order) made.push_back(shape[axis]);
  return made;
}

/// Whether the order leaves the axes of more than one element as they follow each other.
inline bool moves_nothing(const ir::SymShape& shape, const AxisOrder& order) {
  std::optional<size_t> last;
  for (const size_t axis : order) {
    if (ir::same(shape[axis], 1)) continue;
    if (last && axis < *last) return false;
    last = axis;
  }
  return true;
}

}  // namespace tensormill::passes
