#include "compiler/build/pictures/roi_pool.h"

#include "compiler/build/compose.h"

namespace tensormill::build {

ir::ValueId roi_pool(OpBuilder& builder, const RoiPool& options) {
  constexpr int64_t kMostCells = 4096;
  Compose c(builder);
  const ir::SymShape maps = c.shape(options.maps), boxes = c.shape(options.boxes);
  if (maps.size() != 4 || boxes.size() != 2 || boxes[1] != 5)
    builder.invalid("maps of shape " + to_string(maps) + " and boxes of shape " + to_string(boxes));
  if (options.height < 1 || options.width < 1 || options.height > kMostCells || options.width > kMostCells)
    builder.invalid("cells of " + std::to_string(options.height) + " x " + std::to_string(options.width));
  const DType dtype = c.dtype(options.maps), wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  const ir::ValueId which = c.cast(c.squeeze(c.slice(options.boxes, 1, 0, 1), 1), DType::kInt64);
  const ir::ValueId pooled = builder.add(
      "roi_pool", {c.cast(options.maps, wide), c.cast(c.slice(options.boxes, 1, 1, 4), wide), which},
      {{"height", options.height}, {"width", options.width}, {"spatial_scale", options.scale}});
  return c.cast(pooled, dtype);
}

}  // namespace tensormill::build
