// Pictures of another size, and parts of them.
#include <algorithm>

#include "compiler/build/maps/channels.h"
#include "compiler/build/pictures/resize_nodes.h"
#include "compiler/build/pictures/roi_align.h"
#include "compiler/frontend/caffe2/node_context.h"

namespace tensormill::frontend::caffe2 {

namespace {

/// How often each side is taken: height_scale and width_scale, or operand 1.
struct Scales {
  double height = 1, width = 1;
};

Scales scales_of(NodeContext& node) {
  if (node.has_operand(1)) node.unsupported("operand 1", "scales that a tensor has are not implemented");
  const Scales scales{node.real("height_scale", 1), node.real("width_scale", 1)};
  for (const double scale : {scales.height, scales.width})
    if (!(scale > 0) || scale > 65536) node.invalid("a scale of " + std::to_string(scale));
  return scales;
}

/// floor(extent * factor); of a free extent where the factor is a fraction of a power of two.
ir::SymInt scaled_extent(NodeContext& node, const ir::SymInt& extent, double factor) {
  if (extent.is_constant()) {
    // As float32 has the product.
    const auto size = static_cast<double>(static_cast<float>(extent.hint()) * static_cast<float>(factor));
    if (!(size >= 1) || size > static_cast<double>(build::kMaxListed))
      node.invalid("a size of " + std::to_string(size));
    return static_cast<int64_t>(size);
  }
  return build::scaled_by_fraction(node, "scale", extent, factor);
}

V resized(NodeContext& node, V x, const Scales& scales, const build::ResizeOptions& options) {
  if (node.rank(x) != 4) node.invalid("operand 0 has rank " + std::to_string(node.rank(x)));
  const ir::SymShape from = node.shape(x);
  for (const size_t d : {size_t{2}, size_t{3}}) {
    const double scale = d == 2 ? scales.height : scales.width;
    build::ResizeAxis axis;
    axis.in = from[d];
    axis.out = scaled_extent(node, from[d], scale);
    if (same(axis.in, axis.out) && scale == 1) continue;
    axis.by_size = options.mode == "linear";
    axis.scale = axis.by_size ? static_cast<double>(axis.out.hint()) /
                                    static_cast<double>(std::max<int64_t>(axis.in.hint(), 1))
                              : scale;
    x = build::resize_along(node, x, static_cast<int64_t>(d), axis, options);
  }
  return x;
}

void resize(NodeContext& node, const Scales& scales, const build::ResizeOptions& options) {
  const V x = node.operand(0);
  if (node.rank(x) != 4) node.invalid("operand 0 has rank " + std::to_string(node.rank(x)));
  const auto convert = [&](V map) { return resized(node, map, scales, options); };
  node.set_output(node.is_channels_last() ? build::with_channels_first(node, x, convert) : convert(x));
}

build::ResizeOptions nearest() {
  build::ResizeOptions options;
  options.mode = "nearest";
  options.coordinates = "asymmetric";
  options.nearest = "floor";
  return options;
}

}  // namespace

void convert_resize_nearest(NodeContext& node) { resize(node, scales_of(node), nearest()); }

void convert_upsample_nearest(NodeContext& node) {
  const auto scale = static_cast<double>(node.integer("scale", 2));
  if (!(scale >= 1) || scale > 65536) node.invalid("a scale of " + std::to_string(scale));
  resize(node, {scale, scale}, nearest());
}

// The corners of both pictures are the same.
void convert_upsample_bilinear(NodeContext& node) {
  build::ResizeOptions options;
  options.mode = "linear";
  options.coordinates = "align_corners";
  resize(node, scales_of(node), options);
}

// Boxes [n,5], whose first number says the picture, or [n,4] of the only one.
void convert_roi_align(NodeContext& node) {
  Compose c(node);
  const bool is_last = node.is_channels_last();
  const V x = node.operand(0), boxes = node.operand(1);
  const ir::SymShape shape = node.shape(boxes);
  if (node.rank(x) != 4 || shape.size() != 2 || !shape[1].is_constant() ||
      (shape[1].hint() != 4 && shape[1].hint() != 5))
    node.invalid("maps of rank " + std::to_string(node.rank(x)) + " and boxes of shape " + to_string(shape));
  build::RoiAlign options;
  options.maps = is_last ? build::channels_first(node, x) : x;
  options.boxes = shape[1].hint() == 5 ? c.slice(boxes, 1, 1, 4) : boxes;
  options.which = shape[1].hint() == 5 ? c.cast(c.squeeze(c.slice(boxes, 1, 0, 1), 1), DType::kInt64)
                                       : c.filled(DType::kInt64, {shape[0]}, 0);
  options.height = node.integer("pooled_h", 1);
  options.width = node.integer("pooled_w", 1);
  options.samples = node.integer("sampling_ratio", -1);
  options.scale = node.real("spatial_scale", 1);
  options.half_pixel = node.flag("aligned", false);
  constexpr int64_t kMostParts = 4096;
  if (options.height < 1 || options.width < 1 || options.height > kMostParts || options.width > kMostParts)
    node.invalid("parts of " + std::to_string(options.height) + " x " + std::to_string(options.width));
  if (options.samples > kMostParts / std::max(options.height, options.width))
    node.unsupported("sampling_ratio", "more than " + std::to_string(kMostParts) + " samples of a side");
  const V parts = build::roi_align(node, options);
  node.set_output(is_last ? c.transpose(parts, {0, 2, 3, 1}) : parts);
}

}  // namespace tensormill::frontend::caffe2
