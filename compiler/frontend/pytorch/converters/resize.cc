// Maps resized by interpolation, or read at places that a tensor names.
#include <algorithm>

#include "compiler/build/pictures/grid.h"
#include "compiler/build/pictures/resize_nodes.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

struct Target {
  ir::SymInt out;
  double scale = 0;  ///< 0: it follows from the extents
};

/// Of each axis: the size that is given, or what the factor makes of the axis.
std::vector<Target> targets_of(NodeContext& node, V x, size_t spatial) {
  std::vector<Target> targets;
  const bool has_size = node.has("output_size");
  const bool has_factors = takes(node, "scale_factors") && node.has("scale_factors");
  const ir::CheckedList<double> factors = has_factors ? node.reals("scale_factors") : std::vector<double>();
  static constexpr const char* kScales[3][3] = {
      {"scales", "", ""}, {"scales_h", "scales_w", ""}, {"scales_d", "scales_h", "scales_w"}};
  const ir::SymShape sizes = has_size ? node.syms("output_size") : ir::SymShape();
  if ((has_size && sizes.size() != spatial) || (!has_size && factors.size() != spatial))
    node.invalid("sizes or factors of another number than of axes");
  for (size_t d = 0; d < spatial; ++d) {
    Target target;
    const ir::SymInt in = node.shape(x)[d + 2];
    if (has_size) {
      target.out = sizes[d];
      const char* scale = kScales[spatial - 1][d];
      if (!has_factors && takes(node, scale) && node.has(scale)) target.scale = node.real(scale);
    } else {
      if (!(factors[d] > 0 && factors[d] <= static_cast<double>(build::kMaxListed)))
        node.invalid("a factor of " + std::to_string(factors[d]));
      target.scale = factors[d];
      const double whole = std::floor(factors[d]);
      target.out =
          whole == factors[d]
              ? in * static_cast<int64_t>(whole)
              : ir::SymInt(static_cast<int64_t>(std::floor(static_cast<double>(int64_t{in}) * factors[d])));
    }
    if (!ir::demand(ir::Relation::kLess, 0, target.out) ||
        !ir::demand(ir::Relation::kLessEqual, target.out, build::kMaxListed))
      node.invalid("a size of " + to_string(target.out));
    targets.push_back(target);
  }
  return targets;
}

build::ResizeOptions rule_of(NodeContext& node) {
  const std::string& op = node.op();
  build::ResizeOptions rule;
  if (op.find("nearest_exact") != std::string::npos) {
    rule.mode = "nearest";
    rule.nearest = "floor";
    rule.coordinates = "tf_half_pixel_for_nn";
    return rule;
  }
  if (op.find("nearest") != std::string::npos) {
    rule.mode = "nearest";
    rule.nearest = "floor";
    rule.coordinates = "asymmetric";
    return rule;
  }
  rule.mode = op.find("bicubic") != std::string::npos ? "cubic" : "linear";
  rule.coordinates = node.flag("align_corners") ? "align_corners" : "half_pixel";
  rule.antialias = op.ends_with("_aa");
  if (rule.antialias) {
    if (rule.coordinates == "align_corners")
      node.unsupported("align_corners", "it is not implemented with antialias");
    rule.exclude_outside = true;
    rule.cubic = -0.5;
  }
  return rule;
}

}  // namespace

void convert_upsample(NodeContext& node) {
  Compose c(node);
  V x = node.tensor(takes(node, "input") ? "input" : "self");
  const size_t spatial = node.shape(x).size() - 2;
  if (node.rank(x) < 3 || spatial > 3) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  const build::ResizeOptions rule = rule_of(node);
  const std::vector<Target> targets = targets_of(node, x, spatial);
  // Bytes are rounded, and held to their range, after each axis, of which the last is the first.
  const DType own = node.dtype(x);
  const bool is_rounded = own == DType::kUInt8 && rule.mode != "nearest";
  if (is_rounded) x = c.cast(x, DType::kFloat32);
  std::vector<size_t> order(spatial);
  for (size_t d = 0; d < spatial; ++d) order[d] = d;
  // Axes that become shorter first, so that there is less to do for the others.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return targets[a].out.hint() * node.shape(x)[b + 2].hint() <
           targets[b].out.hint() * node.shape(x)[a + 2].hint();
  });
  if (is_rounded)
    for (size_t d = 0; d < spatial; ++d) order[d] = spatial - 1 - d;
  for (const size_t d : order) {
    build::ResizeAxis axis;
    axis.in = node.shape(x)[d + 2];
    axis.out = targets[d].out;
    axis.by_size = targets[d].scale <= 0 || rule.coordinates == "align_corners";
    axis.scale = axis.by_size ? static_cast<double>(axis.out.hint()) /
                                    static_cast<double>(std::max<int64_t>(axis.in.hint(), 1))
                              : targets[d].scale;
    const bool is_open = axis.is_symbolic();
    if (!is_open && axis.in.hint() == axis.out.hint() && (axis.by_size || axis.scale == 1)) continue;
    x = build::resize_along(node, x, static_cast<int64_t>(d) + 2, axis, rule);
    if (is_rounded) x = c.clip(c.unary("round", x), 0, 255);
  }
  node.set_output(0, c.cast(x, own));
}

namespace {

/// Where grid coordinates in [-1, 1] lie on an axis of `extent` elements.
V on_axis(Compose& c, V at, const ir::SymInt& extent, bool align_corners) {
  const V size = c.extent(at, extent);
  if (align_corners) return c.mul(c.times(c.plus(at, 1), 0.5), c.minus(size, 1));
  return c.times(c.minus(c.mul(c.plus(at, 1), size), 1), 0.5);
}

}  // namespace

// Modes: 0 bilinear, 1 nearest, 2 bicubic. Padding: 0 zeros, 1 border, 2 reflection.
void convert_grid_sample(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("input"), grid = node.tensor("grid");
  const int64_t mode = node.integer("interpolation_mode"), padding = node.integer("padding_mode");
  const bool align = node.flag("align_corners");
  if (node.rank(x) != 4 || node.rank(grid) != 4) node.unsupported("input", "volumes are not implemented");
  if (mode == 2) node.unsupported("interpolation_mode", "bicubic is not implemented");
  const ir::SymShape s = node.shape(x);
  V at_x = on_axis(c, c.squeeze(c.slice(grid, 3, 0, 1), 3), s[3], align);
  V at_y = on_axis(c, c.squeeze(c.slice(grid, 3, 1, 1), 3), s[2], align);
  build::Grid map(node, x, padding == 0 ? std::optional<double>(0) : std::nullopt);
  if (padding == 2) {
    at_x = map.reflected(at_x, s[3], !align);
    at_y = map.reflected(at_y, s[2], !align);
  }
  if (padding != 0) {
    at_x = map.clamped(at_x, s[3]);
    at_y = map.clamped(at_y, s[2]);
  }
  if (mode == 1) return node.set_output(0, map.taken(c.unary("round", at_y), c.unary("round", at_x)));
  node.set_output(0, map.between(at_y, at_x));
}

}  // namespace tensormill::frontend::pytorch
