#include "compiler/build/roi_pool.h"

#include <limits>

#include "compiler/build/compose.h"

namespace tensormill::build {

namespace {

using V = ir::ValueId;

/// Which elements of an axis of `extent` lie in each of `cells` parts of the boxes' sides: bool
/// [boxes,cells,extent]. `first`, `last`: the sides' ends, whole numbers [boxes,1].
V cell_members(Compose& c, V first, V last, int64_t cells, const ir::SymInt& extent) {
  const V length = c.plus(c.sub(last, first), 1);
  const V whole = c.binary("max", length, c.number(length, 1));
  const V size = c.div(whole, c.number(length, static_cast<double>(cells)));
  const V cell = c.cast(c.positions(cells, 1, 2), DType::kFloat32),
          at = c.cast(c.positions(extent, 2, 3), DType::kFloat32);
  const V from = c.add(c.unary("floor", c.mul(cell, size)), first);
  const V to = c.add(c.unary("ceil", c.mul(c.plus(cell, 1), size)), first);
  return c.binary("and", c.binary("greater_equal", at, c.unsqueeze(from, 2)),
                  c.binary("less", at, c.unsqueeze(to, 2)));
}

}  // namespace

// First along the rows, then along the columns.
V roi_pool(OpBuilder& builder, const RoiPool& options) {
  constexpr int64_t kMostCells = 4096;
  Compose c(builder);
  const V x = options.maps;
  const ir::SymShape shape = c.shape(x), box_shape = c.shape(options.boxes);
  if (shape.size() != 4 || box_shape.size() != 2 || box_shape[1] != 5)
    builder.invalid("maps of shape " + to_string(shape) + " and boxes of shape " + to_string(box_shape));
  if (options.height < 1 || options.width < 1 || options.height > kMostCells || options.width > kMostCells)
    builder.invalid("cells of " + std::to_string(options.height) + " x " + std::to_string(options.width));
  const ir::SymInt count = box_shape[0];
  const V ends = c.cast(options.boxes, DType::kFloat32);
  // Halves are rounded away from zero.
  const auto side = [&](int64_t index) {
    const V scaled = c.times(c.slice(ends, 1, index, 1), options.scale);
    return c.mul(c.unary("sign", scaled), c.unary("floor", c.plus(c.unary("abs", scaled), 0.5)));
  };
  const V rows = cell_members(c, side(2), side(4), options.height, shape[2]);
  const V columns = cell_members(c, side(1), side(3), options.width, shape[3]);
  const V which = c.cast(c.slice(options.boxes, 1, 0, 1), DType::kInt64);
  const V pictures = c.gather(x, c.reshape(which, {count}), 0);
  const V none = c.number(x, -std::numeric_limits<double>::infinity());
  const V in_columns =
      c.where(c.reshape(columns, {count, 1, 1, options.width, shape[3]}), c.unsqueeze(pictures, 3), none);
  const V narrow = c.unsqueeze(c.reduce("reduce_max", in_columns, {4}, false), 2);  // [boxes,C,1,H,cells]
  const V in_rows = c.where(c.reshape(rows, {count, 1, options.height, shape[2], 1}), narrow, none);
  const V pooled = c.reduce("reduce_max", in_rows, {3}, false);
  return c.where(c.binary("equal", pooled, none), c.number(x, 0), pooled);
}

}  // namespace tensormill::build
