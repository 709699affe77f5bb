/// Resizing of maps [N,C,H,W] as TensorFlow and TensorFlow Lite have it. Thread-safety: as the builder.
#pragma once

#include "compiler/build/compose.h"
#include "compiler/build/pictures/resize_taps.h"

namespace tensormill::build {

/// Which place of the input stands for one of the output.
struct ResizeRule {
  bool align_corners = false;
  bool half_pixel_centers = false;
};
/// To `size` [2], H and W. Errors: Error(kInvalidModel) for sizes that are none, or for both flags at once.
ir::ValueId resize_bilinear(OpBuilder& builder, ir::ValueId map, const ir::SymShape& size,
                            const ResizeRule& rule);
ir::ValueId resize_nearest(OpBuilder& builder, ir::ValueId map, const ir::SymShape& size,
                           const ResizeRule& rule);
/// By any other filter.
ir::ValueId resize_by(OpBuilder& builder, ir::ValueId map, const ir::SymShape& size,
                      const ResizeOptions& options);

}  // namespace tensormill::build
