#include "compiler/build/pictures/roi_pool.h"

#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

void convert_max_roi_pool(NodeContext& context) {
  const ir::Ints cells = context.required_ints("pooled_shape");
  if (cells.size() != 2) context.invalid("pooled_shape is " + to_string(cells));
  build::RoiPool options{context.input(0), context.input(1), cells[0], cells[1]};
  options.scale = context.float_attr("spatial_scale", 1.0);
  context.set_output(0, build::roi_pool(context, options));
}

}  // namespace tensormill::frontend::onnx
