/// Parts of maps, pooled (RoIAlign: He et al., Mask R-CNN, section 3). Thread-safety: belongs to the
/// builder's thread.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

struct RoiAlign {
  ir::ValueId maps = ir::kAbsent;   ///< [N, C, H, W], float
  ir::ValueId boxes = ir::kAbsent;  ///< [K, 4]: x1, y1, x2, y2, of the maps' dtype
  ir::ValueId which = ir::kAbsent;  ///< integer [K]: the map of each box; one that is none fails the run
  int64_t height = 1, width = 1;    ///< parts of a box
  int64_t samples = 0;              ///< of each side of a part; less than 1: as many as it has elements
  double scale = 1;                 ///< of the boxes' coordinates
  bool half_pixel = true;  ///< a coordinate is half an element from its place, and boxes may be empty
  bool is_max = false;     ///< the largest value of a part, else the mean
};
/// [K, C, height, width].
ir::ValueId roi_align(OpBuilder& builder, const RoiAlign& options);

}  // namespace tensormill::build
