// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR over maps [N,H,W,C].
#include "compiler/build/pictures/resize_maps.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

void convert_resize_bilinear(NodeContext& node) {
  const auto options = node.options<ResizeBilinearOptions>();
  const build::ResizeRule rule{options.align_corners, options.half_pixel_centers};
  const ir::SymShape size = node.known_ints(1, "size");
  node.set_real(0, node.last(build::resize_bilinear(node, node.real_first(0), size, rule)));
}

void convert_resize_nearest(NodeContext& node) {
  const auto options = node.options<ResizeNearestNeighborOptions>();
  const build::ResizeRule rule{options.align_corners, options.half_pixel_centers};
  const ir::SymShape size = node.known_ints(1, "size");
  if (node.has_output_scale(0))
    return node.set_stored(0, node.last(build::resize_nearest(node, node.first(node.stored(0)), size, rule)));
  node.set_real(0, node.last(build::resize_nearest(node, node.real_first(0), size, rule)));
}

}  // namespace tensormill::frontend::tflite
