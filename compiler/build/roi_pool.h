/// The largest elements of the cells that boxes are cut into (Girshick 2015, "Fast R-CNN", section 2.1).
/// Thread-safety: as the builder.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

struct RoiPool {
  ir::ValueId maps = ir::kAbsent;    ///< [boxes...,C,H,W], where an extent of the boxes may be 1
  ir::ValueId boxes = ir::kAbsent;   ///< [boxes...,4]: x1, y1, x2, y2, float
  ir::SymInt height = 1, width = 1;  ///< H and W
  int64_t rows = 1, columns = 1;     ///< of cells
  double scale = 1;                  ///< of the boxes' coordinates
};
/// [boxes...,C,rows,columns]; a cell without elements is 0.
ir::ValueId roi_max_pool(OpBuilder& builder, const RoiPool& options);

}  // namespace tensormill::build
