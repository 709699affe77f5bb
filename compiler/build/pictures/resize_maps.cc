#include "compiler/build/pictures/resize_maps.h"

#include <algorithm>
#include <cmath>

#include "compiler/build/pictures/resize_nodes.h"
#include "runtime/base/error.h"

namespace tensormill::build {

using V = ir::ValueId;

namespace {

struct Sizes {
  ir::SymInt in, out;
};

/// Of axes H and W.
std::vector<Sizes> sizes_of(OpBuilder& builder, V map, const ir::SymShape& size) {
  if (size.size() != 2 || builder.rank(map) != 4)
    builder.invalid("a size of " + std::to_string(size.size()) + " numbers for an input of rank " +
                    std::to_string(builder.rank(map)));
  const ir::SymShape shape = builder.type(map).shape;
  for (size_t d = 0; d < 2; ++d) {
    if (!ir::demand(ir::Relation::kLess, 0, size[d]) ||
        !ir::demand(ir::Relation::kLessEqual, size[d], kMaxListed))
      builder.invalid("a size of " + to_string(size[d]));
  }
  return {{shape[2], size[0]}, {shape[3], size[1]}};
}

/// Axes that become shorter first, so that there is less to do for the others.
std::vector<size_t> order_of(const std::vector<Sizes>& sizes) {
  const bool grows = sizes[0].out.hint() > sizes[0].in.hint();
  return grows ? std::vector<size_t>{1, 0} : std::vector<size_t>{0, 1};
}

void check_rule(const OpBuilder& builder, const ResizeRule& rule) {
  if (rule.align_corners && rule.half_pixel_centers)
    builder.invalid("align_corners and half_pixel_centers are both set");
}

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

}  // namespace

V resize_by(OpBuilder& builder, V map, const ir::SymShape& size, const ResizeOptions& options) {
  const std::vector<Sizes> sizes = sizes_of(builder, map, size);
  for (const size_t d : order_of(sizes)) {
    const bool is_open = !sizes[d].in.is_constant() || !sizes[d].out.is_constant();
    if (!is_open && same(sizes[d].in, sizes[d].out)) continue;
    ResizeAxis axis;
    axis.in = sizes[d].in;
    axis.out = sizes[d].out;
    axis.by_size = true;
    axis.scale = static_cast<double>(sizes[d].out.hint()) / static_cast<double>(sizes[d].in.hint());
    map = resize_along(builder, map, static_cast<int64_t>(d) + 2, axis, options);
  }
  return map;
}

V resize_bilinear(OpBuilder& builder, V map, const ir::SymShape& size, const ResizeRule& rule) {
  check_rule(builder, rule);
  ResizeOptions options;
  options.mode = "linear";
  options.coordinates = rule.align_corners        ? "align_corners"
                        : rule.half_pixel_centers ? "half_pixel"
                                                  : "asymmetric";
  return resize_by(builder, map, size, options);
}

V resize_nearest(OpBuilder& builder, V map, const ir::SymShape& size, const ResizeRule& rule) {
  check_rule(builder, rule);
  Compose c(builder);
  const std::vector<Sizes> sizes = sizes_of(builder, map, size);
  const bool is_open = std::any_of(sizes.begin(), sizes.end(), [](const Sizes& each) {
    return !each.in.is_constant() || !each.out.is_constant();
  });
  if (is_open) {
    ResizeOptions options;
    options.mode = "nearest";
    options.nearest = rule.align_corners ? "round_prefer_ceil" : "floor";
    options.coordinates = rule.align_corners        ? "align_corners"
                          : rule.half_pixel_centers ? "tf_half_pixel_for_nn"
                                                    : "asymmetric";
    return resize_by(builder, map, size, options);
  }
  for (const size_t d : order_of(sizes)) {
    const int64_t in = sizes[d].in, out = sizes[d].out;
    if (in == out) continue;
    if (in < 1) builder.invalid("an axis of " + std::to_string(in) + " elements");
    const std::vector<int64_t> elements =
        nearest_elements(in, out, rule.align_corners, rule.half_pixel_centers);
    map = c.gather(map, c.ints(elements, {out}), static_cast<int64_t>(d) + 2);
  }
  return map;
}

}  // namespace tensormill::build
