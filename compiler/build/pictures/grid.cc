#include "compiler/build/pictures/grid.h"

namespace tensormill::build {

using V = ir::ValueId;

Grid::Grid(OpBuilder& builder, V x, std::optional<double> outside) : c_(builder), x_(x), outside_(outside) {
  const ir::SymShape s = c_.shape(x);
  rows_ = s[2];
  columns_ = s[3];
  flat_ = c_.reshape(x, {s[0], s[1], s[2] * s[3]});
}

V Grid::clamped(V at, const ir::SymInt& extent) {
  const V most = c_.minus(c_.extent(at, extent), 1);
  return c_.binary("max", c_.number(at, 0), c_.binary("min", at, most));
}

V Grid::reflected(V at, const ir::SymInt& extent, bool at_edges) {
  const V low = c_.number(at, at_edges ? -0.5 : 0);
  const V span = at_edges ? c_.extent(at, extent) : c_.minus(c_.extent(at, extent), 1);
  const V whole = c_.binary("max", span, c_.number(at, 1e-30));
  const V away = c_.unary("abs", c_.sub(at, low));
  const V turns = c_.unary("floor", c_.div(away, whole));
  const V rest = c_.sub(away, c_.mul(turns, whole));
  const V half = c_.times(turns, 0.5);
  const V is_even = c_.binary("equal", c_.unary("floor", half), half);
  return c_.add(low, c_.where(is_even, rest, c_.sub(whole, rest)));
}

V Grid::taken(V y, V x) {
  const V row = c_.cast(clamped(y, rows_), DType::kInt64),
          column = c_.cast(clamped(x, columns_), DType::kInt64);
  const ir::SymShape s = c_.shape(y);
  const ir::SymInt points = s[1] * s[2], channels = c_.shape(x_)[1];
  const V place = c_.add(c_.mul(row, c_.dims({columns_}, {})), column);
  const V index = c_.expand(c_.reshape(place, {s[0], 1, points}), {s[0], channels, points});
  const V values = c_.reshape(c_.gather_elements(flat_, index, 2), {s[0], channels, s[1], s[2]});
  if (!outside_) return values;
  const V is_in = c_.binary("and", inside(y, rows_), inside(x, columns_));
  return c_.where(c_.unsqueeze(is_in, 1), values, c_.number(values, *outside_));
}

V Grid::between(V y, V x) {
  const V left = c_.unary("floor", x), top = c_.unary("floor", y);
  const V right = c_.sub(x, left), low = c_.sub(y, top);
  V sum = ir::kAbsent;
  for (const int down : {0, 1}) {
    for (const int over : {0, 1}) {
      const V wy = down == 1 ? low : c_.sub(c_.number(low, 1), low);
      const V wx = over == 1 ? right : c_.sub(c_.number(right, 1), right);
      const V part = c_.mul(taken(c_.plus(top, down), c_.plus(left, over)), c_.unsqueeze(c_.mul(wy, wx), 1));
      sum = sum == ir::kAbsent ? part : c_.add(sum, part);
    }
  }
  return sum;
}

V Grid::inside(V at, const ir::SymInt& extent) {
  return c_.binary("and", c_.binary("greater_equal", at, c_.number(at, 0)),
                   c_.binary("less", at, c_.extent(at, extent)));
}

}  // namespace tensormill::build
