#include "compiler/build/roi_pool.h"

#include <limits>

#include "compiler/build/compose.h"

namespace tensormill::build {

namespace {

using V = ir::ValueId;

/// 0, 1 ... count - 1 in that shape.
V ramp(Compose& c, DType dtype, const ir::SymInt& count, const ir::SymShape& shape) {
  if (!count.is_constant()) return c.cast(c.iota(count, shape), dtype);
  std::vector<double> values;
  for (const int64_t each : c.count_to(count.hint())) values.push_back(static_cast<double>(each));
  return c.doubles(dtype, values, shape);
}

/// Which elements of an axis of `extent` lie in each of `cells` parts of the boxes' sides: bool
/// [boxes,cells,extent]. `first`, `last`: the sides' ends, whole numbers [boxes,1].
V cell_members(Compose& c, V first, V last, int64_t cells, const ir::SymInt& extent) {
  const DType dtype = c.dtype(first);
  const V length = c.plus(c.sub(last, first), 1);
  const V whole = c.binary("max", length, c.number(length, 1));
  const V size = c.div(whole, c.number(length, static_cast<double>(cells)));
  const V cell = ramp(c, dtype, cells, {1, cells}), at = ramp(c, dtype, extent, {1, 1, extent});
  const V from = c.add(c.unary("floor", c.mul(cell, size)), first);
  const V to = c.add(c.unary("ceil", c.mul(c.plus(cell, 1), size)), first);
  return c.binary("and", c.binary("greater_equal", at, c.unsqueeze(from, 2)),
                  c.binary("less", at, c.unsqueeze(to, 2)));
}

}  // namespace

// First along the columns, then along the rows.
V roi_max_pool(OpBuilder& builder, const RoiPool& options) {
  Compose c(builder);
  ir::SymShape lead = c.shape(options.boxes);
  lead.pop_back();
  const auto rank = static_cast<int64_t>(lead.size());
  const ir::SymInt count = num_elements(lead);
  const V ends = c.reshape(options.boxes, {count, 4});
  // Halves are rounded away from zero.
  const auto side = [&](int64_t index) {
    const V scaled = c.times(c.slice(ends, 1, index, 1), options.scale);
    return c.mul(c.unary("sign", scaled), c.unary("floor", c.plus(c.unary("abs", scaled), 0.5)));
  };
  const auto beside = [&](V members, const ir::SymShape& last) {
    ir::SymShape to = lead;
    to.insert(to.end(), last.begin(), last.end());
    return c.reshape(members, to);
  };
  const V rows = beside(cell_members(c, side(1), side(3), options.rows, options.height),
                        {1, options.rows, options.height, 1});
  const V columns = beside(cell_members(c, side(0), side(2), options.columns, options.width),
                           {1, 1, options.columns, options.width});
  const V none = c.number(options.maps, -std::numeric_limits<double>::infinity());
  const V in_columns = c.where(columns, c.unsqueeze(options.maps, rank + 2), none);
  const V narrow = c.unsqueeze(c.reduce("reduce_max", in_columns, {rank + 3}, false), rank + 1);
  const V pooled = c.reduce("reduce_max", c.where(rows, narrow, none), {rank + 2}, false);
  return c.where(c.binary("equal", pooled, none), c.number(pooled, 0), pooled);
}

}  // namespace tensormill::build
