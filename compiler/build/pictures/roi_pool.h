/// The largest elements of the cells that boxes are cut into (Girshick 2015, "Fast R-CNN", section 2.1).
/// Thread-safety: belongs to the builder's thread.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

struct RoiPool {
  ir::ValueId maps = ir::kAbsent;   ///< [N, C, H, W], float
  ir::ValueId boxes = ir::kAbsent;  ///< [K, 5]: which map, x1, y1, x2, y2
  int64_t height = 1, width = 1;    ///< cells of a box
  double scale = 1;                 ///< of the boxes' coordinates, which are then rounded to elements
};
/// [K, C, height, width]; a cell without elements is 0.
ir::ValueId roi_pool(OpBuilder& builder, const RoiPool& options);

}  // namespace tensormill::build
