// MaxRoiPool: the largest elements of the cells that boxes are cut into.
#include "compiler/build/roi_pool.h"

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

// A box says its picture, and its corners.
void convert_max_roi_pool(NodeContext& context) {
  using V = ir::ValueId;
  Compose c(context);
  const V x = context.input(0), boxes = context.input(1);
  const ir::SymShape shape = c.shape(x), box_shape = c.shape(boxes);
  const std::vector<int64_t> cells = context.required_ints("pooled_shape");
  if (shape.size() != 4 || box_shape.size() != 2 || box_shape[1] != 5)
    context.invalid("X has shape " + to_string(shape) + ", the boxes " + to_string(box_shape));
  if (cells.size() != 2 || cells[0] < 1 || cells[1] < 1 || cells[0] > shape[2] * 64 + 64 ||
      cells[1] > shape[3] * 64 + 64)
    context.invalid("pooled_shape is " + to_string(cells));
  const int64_t count = box_shape[0], height = shape[2], width = shape[3];
  build::RoiPool pool;
  pool.maps = c.gather(x, c.reshape(c.cast(c.slice(boxes, 1, 0, 1), DType::kInt64), {count}), 0);
  pool.boxes = c.slice(c.cast(boxes, DType::kFloat32), 1, 1, 4);
  pool.height = height;
  pool.width = width;
  pool.rows = cells[0];
  pool.columns = cells[1];
  pool.scale = context.float_attr("spatial_scale", 1.0);
  context.set_output(0, build::roi_max_pool(context, pool));
}

}  // namespace tensormill::frontend::onnx
