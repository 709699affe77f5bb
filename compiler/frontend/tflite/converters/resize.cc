// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR over maps [N,H,W,C].
#include <algorithm>
#include <cmath>

#include "compiler/build/resize_nodes.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

struct Sizes {
  ir::SymInt in, out;
};

/// Of axes H and W.
std::vector<Sizes> sizes_of(NodeContext& node, V map) {
  const ir::SymShape size = node.known_ints(1, "size");
  if (size.size() != 2 || node.rank(map) != 4)
    node.invalid("a size of " + std::to_string(size.size()) + " numbers for an input of rank " +
                 std::to_string(node.rank(map)));
  const ir::SymShape shape = node.shape(map);
  for (size_t d = 0; d < 2; ++d) {
    if (!ir::demand(ir::Relation::kLess, 0, size[d]) || size[d].hint() > build::kMaxListed)
      node.invalid("a size of " + to_string(size[d]));
  }
  return {{shape[2], size[0]}, {shape[3], size[1]}};
}

/// Axes that become shorter first, so that there is less to do for the others.
std::vector<size_t> order_of(const std::vector<Sizes>& sizes) {
  const bool grows = sizes[0].out.hint() > sizes[0].in.hint();
  return grows ? std::vector<size_t>{1, 0} : std::vector<size_t>{0, 1};
}

V resized(NodeContext& node, V map, const build::ResizeOptions& options) {
  Compose c(node);
  const std::vector<Sizes> sizes = sizes_of(node, map);
  for (const size_t d : order_of(sizes)) {
    const bool is_open = node.is_one_form() || !sizes[d].in.is_constant() || !sizes[d].out.is_constant();
    if (!is_open && same(sizes[d].in, sizes[d].out)) continue;
    build::ResizeAxis axis;
    axis.in = sizes[d].in;
    axis.out = sizes[d].out;
    axis.by_size = true;
    axis.scale = static_cast<double>(sizes[d].out.hint()) / static_cast<double>(sizes[d].in.hint());
    const auto dim = static_cast<int64_t>(d) + 2;
    map = is_open ? build::resize_by_nodes(c, map, dim, axis, options)
                  : build::resize_by_table(c, map, dim, axis, options);
  }
  return map;
}

void check_forms(const NodeContext& node, bool align_corners, bool half_pixel_centers) {
  if (align_corners && half_pixel_centers) node.invalid("align_corners and half_pixel_centers are both set");
}

}  // namespace

void convert_resize_bilinear(NodeContext& node) {
  const auto options = node.options<ResizeBilinearOptions>();
  check_forms(node, options.align_corners, options.half_pixel_centers);
  build::ResizeOptions rule;
  rule.mode = "linear";
  rule.coordinates = options.align_corners        ? "align_corners"
                     : options.half_pixel_centers ? "half_pixel"
                                                  : "asymmetric";
  node.set_real(0, node.last(resized(node, node.real_first(0), rule)));
}

namespace {

/// The element that stands for each of the output: in single precision, as the file's own runtime has it,
/// since which one it is hangs on the rounding.
std::vector<int64_t> nearest_elements(int64_t in, int64_t out, bool align_corners, bool half_pixel_centers) {
  const float scale = align_corners && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                               : static_cast<float>(in) / static_cast<float>(out);
  const float offset = half_pixel_centers ? 0.5F : 0.0F;
  std::vector<int64_t> elements;
  for (int64_t i = 0; i < out; ++i) {
    const float place = (static_cast<float>(i) + offset) * scale;
    const auto element = static_cast<int64_t>(align_corners ? std::round(place) : std::floor(place));
    elements.push_back(std::clamp<int64_t>(element, 0, in - 1));
  }
  return elements;
}

V resized_nearest(NodeContext& node, V map, const ResizeNearestNeighborOptions& options) {
  Compose c(node);
  const std::vector<Sizes> sizes = sizes_of(node, map);
  const bool is_open = node.is_one_form() || std::any_of(sizes.begin(), sizes.end(), [](const Sizes& each) {
                         return !each.in.is_constant() || !each.out.is_constant();
                       });
  if (is_open) {
    build::ResizeOptions rule;
    rule.mode = "nearest";
    rule.nearest = options.align_corners ? "round_prefer_ceil" : "floor";
    rule.coordinates = options.align_corners        ? "align_corners"
                       : options.half_pixel_centers ? "tf_half_pixel_for_nn"
                                                    : "asymmetric";
    return resized(node, map, rule);
  }
  for (const size_t d : order_of(sizes)) {
    const int64_t in = sizes[d].in, out = sizes[d].out;
    if (in == out) continue;
    if (in < 1) node.invalid("an axis of " + std::to_string(in) + " elements");
    const std::vector<int64_t> elements =
        nearest_elements(in, out, options.align_corners, options.half_pixel_centers);
    map = c.gather(map, c.ints(elements, {out}), static_cast<int64_t>(d) + 2);
  }
  return map;
}

}  // namespace

void convert_resize_nearest(NodeContext& node) {
  const auto options = node.options<ResizeNearestNeighborOptions>();
  check_forms(node, options.align_corners, options.half_pixel_centers);
  if (node.has_output_scale(0))
    return node.set_stored(0, node.last(resized_nearest(node, node.first(node.stored(0)), options)));
  node.set_real(0, node.last(resized_nearest(node, node.real_first(0), options)));
}

}  // namespace tensormill::frontend::tflite
