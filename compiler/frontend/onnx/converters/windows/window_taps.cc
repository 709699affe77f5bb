#include "compiler/frontend/onnx/converters/windows/window_taps.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

V number(Compose& c, const ir::SymInt& value) { return c.dims({value}, {}); }

/// All axes' parts, each times what it counts in the whole.
V sum_of(Compose& c, const std::vector<V>& parts, const ir::SymShape& counts) {
  V sum = c.mul(parts[0], number(c, counts[0]));
  for (size_t d = 1; d < parts.size(); ++d) sum = c.add(sum, c.mul(parts[d], number(c, counts[d])));
  return sum;
}

/// How much one step along each axis counts in a row of all elements.
ir::SymShape strides_of(const ir::SymShape& shape, bool column_major) {
  ir::SymShape strides(shape.size(), 1);
  for (size_t i = 1; i < shape.size(); ++i) {
    const size_t d = column_major ? i : shape.size() - 1 - i, before = column_major ? d - 1 : d + 1;
    strides[d] = strides[before] * shape[before];
  }
  return strides;
}

V as_matrix(Compose& c, V x, const ir::SymShape& rows, const ir::SymShape& columns) {
  ir::SymShape whole = rows;
  whole.insert(whole.end(), columns.begin(), columns.end());
  return c.reshape(c.expand(x, whole), {num_elements(rows), num_elements(columns)});
}

}  // namespace

ir::ValueId window_elements(NodeContext& context, const WindowGrid& grid, bool column_major) {
  Compose c(context);
  const size_t rank = grid.in.size();
  std::vector<V> elements;
  for (size_t d = 0; d < rank; ++d) {
    const auto step = static_cast<double>(grid.dilations[d]);
    const V window = c.positions(grid.out[d], d, 2 * rank),
            tap = c.positions(grid.kernel[d], d + rank, 2 * rank);
    const V start =
        c.minus(c.times(window, static_cast<double>(grid.strides[d])), static_cast<double>(grid.pads[d]));
    const V by = number(c, grid.dilations[d]);
    const V first = c.binary("max", c.div(c.sub(number(c, grid.dilations[d] - 1), start), by), number(c, 0));
    const V last = c.div(c.sub(number(c, grid.in[d] - 1), start), by);
    elements.push_back(c.add(start, c.times(c.binary("min", c.binary("max", tap, first), last), step)));
  }
  return as_matrix(c, sum_of(c, elements, strides_of(grid.in, column_major)), grid.out, grid.kernel);
}

ir::ValueId element_windows(NodeContext& context, const WindowGrid& grid) {
  Compose c(context);
  const size_t rank = grid.in.size();
  std::vector<V> windows, taps;
  V inside = ir::kAbsent;
  const auto also = [&](V condition) {
    inside = inside == ir::kAbsent ? condition : c.binary("and", inside, condition);
  };
  for (size_t d = 0; d < rank; ++d) {
    const V element = c.positions(grid.in[d], d, 2 * rank),
            tap = c.positions(grid.kernel[d], d + rank, 2 * rank);
    const V start = c.sub(c.plus(element, static_cast<double>(grid.pads[d])),
                          c.times(tap, static_cast<double>(grid.dilations[d])));
    const V step = number(c, grid.strides[d]), window = c.div(start, step);
    also(c.binary("greater_equal", start, number(c, 0)));
    also(c.binary("equal", c.mul(window, step), start));
    also(c.binary("less", window, number(c, grid.out[d])));
    windows.push_back(window);
    taps.push_back(tap);
  }
  const ir::SymInt points = num_elements(grid.out);
  const V tap = c.mul(sum_of(c, taps, strides_of(grid.kernel, false)), number(c, points));
  const V found = c.add(tap, sum_of(c, windows, strides_of(grid.out, false)));
  const V none = number(c, context.product(num_elements(grid.kernel), points));
  return as_matrix(c, c.where(inside, found, none), grid.in, grid.kernel);
}

}  // namespace tensormill::frontend::onnx
