// Parts of maps that boxes name, pooled.
#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler/build/pictures/roi_align.h"
#include "compiler/build/pictures/roi_pool.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

constexpr int64_t kMostParts = 4096;  ///< of a side of a box

/// Attribute pooled_size: height and width.
std::pair<int64_t, int64_t> pooled_size(NodeContext& node) {
  const ir::Ints size = node.ints("pooled_size");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || std::max(size[0], size[1]) > kMostParts)
    node.invalid("pooled_size is \"" + node.text("pooled_size").substr(0, 40) + "\"");
  return {size[0], size[1]};
}

}  // namespace

void convert_roi_pooling(NodeContext& node) {
  build::RoiPool options{node.input(0), node.input(1)};
  std::tie(options.height, options.width) = pooled_size(node);
  options.scale = node.real("spatial_scale");
  node.set_output(build::roi_pool(node, options));
}

// Boxes [n,5], whose first number says the picture; a box of one below 0 is none, and gives zeros.
void convert_roi_align(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0), boxes = node.input(1);
  const ir::SymShape shape = node.shape(boxes);
  if (node.rank(x) != 4 || shape.size() != 2 || shape[1] != 5)
    node.invalid("maps of shape " + to_string(node.shape(x)) + " and boxes of shape " + to_string(shape));
  if (node.flag("position_sensitive", false))
    node.unsupported("position_sensitive", "a map of its own for each part is not implemented");
  build::RoiAlign options{x, c.cast(c.slice(boxes, 1, 1, 4), node.dtype(x))};
  std::tie(options.height, options.width) = pooled_size(node);
  options.samples = node.integer("sample_ratio", -1);
  options.scale = node.real("spatial_scale");
  options.half_pixel = node.flag("aligned", false);
  if (options.samples > kMostParts / std::max(options.height, options.width))
    node.unsupported("sample_ratio", "more than " + std::to_string(kMostParts) + " samples of a side");
  const V which = c.cast(c.reshape(c.slice(boxes, 1, 0, 1), {shape[0]}), DType::kInt64);
  options.which = c.binary("max", which, c.number(which, 0));
  const V parts = build::roi_align(node, options);
  const V is_none = c.reshape(c.binary("less", which, c.number(which, 0)), {shape[0], 1, 1, 1});
  node.set_output(c.where(is_none, c.number(parts, 0), parts));
}

}  // namespace tensormill::frontend::mxnet
