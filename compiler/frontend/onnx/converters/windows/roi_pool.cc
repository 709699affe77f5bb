// MaxRoiPool: the largest elements of the cells that boxes are cut into (Girshick 2015, "Fast R-CNN",
// section 2.1).
#include <limits>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Which elements of an axis of `extent` lie in each of `cells` parts of the boxes' sides: bool
/// [boxes,cells,extent]. `first`, `last`: the sides' ends, whole numbers [boxes,1].
V cell_members(Compose& c, V first, V last, int64_t cells, int64_t extent) {
  const auto ramp = [&](int64_t count, const ir::SymShape& shape) {
    std::vector<double> values;
    for (const int64_t each : c.count_to(count)) values.push_back(static_cast<double>(each));
    return c.doubles(DType::kFloat32, values, shape);
  };
  const V length = c.plus(c.sub(last, first), 1);
  const V whole = c.binary("max", length, c.number(length, 1));
  const V size = c.div(whole, c.number(length, static_cast<double>(cells)));
  const V cell = ramp(cells, {1, cells}), at = ramp(extent, {1, 1, extent});
  const V from = c.add(c.unary("floor", c.mul(cell, size)), first);
  const V to = c.add(c.unary("ceil", c.mul(c.plus(cell, 1), size)), first);
  return c.binary("and", c.binary("greater_equal", at, c.unsqueeze(from, 2)),
                  c.binary("less", at, c.unsqueeze(to, 2)));
}

}  // namespace

// First along the rows, then along the columns; a cell without elements is 0.
void convert_max_roi_pool(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0), boxes = context.input(1);
  const ir::SymShape shape = c.shape(x), box_shape = c.shape(boxes);
  const std::vector<int64_t> cells = context.required_ints("pooled_shape");
  if (shape.size() != 4 || box_shape.size() != 2 || box_shape[1] != 5)
    context.invalid("X has shape " + to_string(shape) + ", the boxes " + to_string(box_shape));
  if (cells.size() != 2 || cells[0] < 1 || cells[1] < 1 || cells[0] > shape[2] * 64 + 64 ||
      cells[1] > shape[3] * 64 + 64)
    context.invalid("pooled_shape is " + to_string(cells));
  const int64_t count = box_shape[0];
  const V ends = c.cast(boxes, DType::kFloat32);
  // Halves are rounded away from zero.
  const auto side = [&](int64_t index) {
    const V scaled = c.times(c.slice(ends, 1, index, 1), context.float_attr("spatial_scale", 1.0));
    return c.mul(c.unary("sign", scaled), c.unary("floor", c.plus(c.unary("abs", scaled), 0.5)));
  };
  const V rows = cell_members(c, side(2), side(4), cells[0], shape[2]);
  const V columns = cell_members(c, side(1), side(3), cells[1], shape[3]);
  const V pictures = c.gather(x, c.reshape(c.cast(c.slice(boxes, 1, 0, 1), DType::kInt64), {count}), 0);
  const V none = c.number(x, -std::numeric_limits<double>::infinity());
  const V in_columns =
      c.where(c.reshape(columns, {count, 1, 1, cells[1], shape[3]}), c.unsqueeze(pictures, 3), none);
  const V narrow = c.unsqueeze(c.reduce("reduce_max", in_columns, {4}, false), 2);  // [boxes,C,1,H,cells]
  const V in_rows = c.where(c.reshape(rows, {count, 1, cells[0], shape[2], 1}), narrow, none);
  const V pooled = c.reduce("reduce_max", in_rows, {3}, false);
  context.set_output(0, c.where(c.binary("equal", pooled, none), c.number(x, 0), pooled));
}

}  // namespace tensormill::frontend::onnx
