// Pictures in other sizes: the last two axes, or as many as a resize names.
#include <algorithm>

#include "compiler/build/pictures/resize_nodes.h"
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

/// Which place of the input an output element of an axis stands for, as a sampling mode says.
struct AxisRule {
  const char* coordinates;
  double roi_start = 0, roi_end = 1;
};

AxisRule axis_rule(NodeContext& node, const std::string& mode, const ir::SymInt& out) {
  if (mode == "DEFAULT") return {"asymmetric"};
  if (mode == "UNALIGN_CORNERS") return {"half_pixel"};
  // One element stands for the first, or for the middle.
  if (mode == "STRICT_ALIGN_CORNERS") return {"align_corners"};
  if (mode == "ALIGN_CORNERS") return {out.is_constant() && out.hint() == 1 ? "half_pixel" : "align_corners"};
  if (mode != "OFFSET_CORNERS") node.unsupported("sampling_mode", "\"" + mode + "\" is not implemented");
  if (!out.is_constant() || out.hint() < 1)
    node.unsupported("sampling_mode", "OFFSET_CORNERS to a free extent is not implemented");
  // The middles of as many parts of what is between the first and the last element.
  const auto parts = static_cast<double>(out.hint());
  return {"tf_crop_and_resize", 0.5 / parts, (parts - 0.5) / parts};
}

/// Along `axes`: those that become shorter first, so that there is less to do for the others.
V resized_along(NodeContext& node, V x, const ir::SymShape& to, std::vector<size_t> axes,
                const std::string& mode, const build::ResizeOptions& options) {
  const ir::SymShape from = node.shape(x);
  std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) {
    return to[a].hint() * from[b].hint() < to[b].hint() * from[a].hint();
  });
  for (const size_t d : axes) {
    if (same(from[d], to[d]) && (mode != "OFFSET_CORNERS" || same(from[d], 1))) continue;
    if (!ir::demand(ir::Relation::kLess, 0, to[d]) ||
        !ir::demand(ir::Relation::kLessEqual, to[d], build::kMaxListed))
      node.invalid("a size of " + to_string(to[d]));
    build::ResizeOptions own = options;
    const AxisRule rule = axis_rule(node, mode, to[d]);
    own.coordinates = rule.coordinates;
    build::ResizeAxis axis;
    axis.in = from[d];
    axis.out = to[d];
    axis.by_size = true;
    axis.scale =
        static_cast<double>(to[d].hint()) / static_cast<double>(std::max<int64_t>(from[d].hint(), 1));
    axis.roi_start = rule.roi_start;
    axis.roi_end = rule.roi_end;
    x = build::resize_along(node, x, static_cast<int64_t>(d), axis, own);
  }
  return x;
}

/// Along height and width.
V resized(NodeContext& node, V x, const ir::SymShape& to, const std::string& mode,
          const build::ResizeOptions& options) {
  return resized_along(node, x, to, {to.size() - 2, to.size() - 1}, mode, options);
}

build::ResizeOptions linear() {
  build::ResizeOptions options;
  options.mode = "linear";
  return options;
}

build::ResizeOptions nearest(const char* rounding) {
  build::ResizeOptions options;
  options.mode = "nearest";
  options.nearest = rounding;
  return options;
}

/// The shape of x with other last axes.
ir::SymShape with_last(NodeContext& node, V x, const ir::SymInt& height, const ir::SymInt& width) {
  ir::SymShape shape = node.shape(x);
  if (shape.size() < 3) node.invalid("the input has rank " + std::to_string(shape.size()));
  shape[shape.size() - 2] = height;
  shape.back() = width;
  return shape;
}

/// floor(extent * factor): as the file says it, or of a factor that is a fraction of a power of two.
ir::SymInt scaled_extent(NodeContext& node, const char* name, const ir::SymInt& extent, int64_t from_end) {
  const double factor = node.real(name, 1);
  if (!(factor > 0) || factor > 65536) node.invalid(std::string(name) + " is " + std::to_string(factor));
  const std::vector<int64_t>& said = node.output_type(0).dims;
  const auto rank = static_cast<int64_t>(said.size());
  if (extent.is_constant() && rank >= from_end && said[static_cast<size_t>(rank - from_end)] > 0)
    return said[static_cast<size_t>(rank - from_end)];
  return build::scaled_by_fraction(node, name, extent, factor);
}

ir::SymShape scaled_shape(NodeContext& node, V x) {
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 3) node.invalid("the input has rank " + std::to_string(shape.size()));
  return with_last(node, x, scaled_extent(node, "scale_factor_height", shape[shape.size() - 2], 2),
                   scaled_extent(node, "scale_factor_width", shape.back(), 1));
}

}  // namespace

void convert_resize_bilinear(NodeContext& node) {
  const V x = node.tensor("x");
  const ir::SymShape to =
      with_last(node, x, node.integer("target_size_height", 1), node.integer("target_size_width", 1));
  node.set_output(resized(node, x, to, node.text("sampling_mode", "DEFAULT"), linear()));
}

// The element in front of each place, as torch has it.
void convert_resize_nearest_neighbor(NodeContext& node) {
  const V x = node.tensor("x");
  const ir::SymShape to =
      with_last(node, x, node.integer("target_size_height"), node.integer("target_size_width"));
  node.set_output(resized(node, x, to, "DEFAULT", nearest("floor")));
}

// half_pixel_centers is what align_corners is not, where it is not given.
void convert_upsample_bilinear(NodeContext& node) {
  const V x = node.tensor("x");
  const bool is_aligned = node.flag("align_corners", true);
  const bool is_half = node.flag("half_pixel_centers", !is_aligned);
  if (is_aligned && is_half) node.invalid("align_corners and half_pixel_centers are both set");
  const char* mode = is_aligned ? "STRICT_ALIGN_CORNERS" : is_half ? "UNALIGN_CORNERS" : "DEFAULT";
  node.set_output(resized(node, x, scaled_shape(node, x), mode, linear()));
}

void convert_upsample_nearest_neighbor(NodeContext& node) {
  const V x = node.tensor("x");
  node.set_output(resized(node, x, scaled_shape(node, x), "DEFAULT", nearest("floor")));
}

// The last entries of the shape, as many as resized_dims; one of 0 leaves its axis. The element beside each
// place is the nearest one.
void convert_resize(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  const ir::SymShape wanted = node.numbers("shape", 0);
  ir::SymShape to = node.shape(x);
  const auto count = static_cast<size_t>(std::max<int64_t>(node.integer("resized_dims"), 0));
  if (count > wanted.size() || count > to.size())
    node.invalid("resized_dims is " + std::to_string(count) + " of " + std::to_string(wanted.size()) +
                 " entries and " + std::to_string(to.size()) + " axes");
  std::vector<size_t> axes;
  for (size_t i = 1; i <= count; ++i) {
    const ir::SymInt& entry = wanted[wanted.size() - i];
    if (same(entry, 0)) continue;
    to[to.size() - i] = entry;
    axes.push_back(to.size() - i);
  }
  const std::string way = node.text("interpolation_mode", "LINEAR");
  if (way != "LINEAR" && way != "NEAREST_NEIGHBOR")
    node.unsupported("interpolation_mode", "\"" + way + "\" is not implemented");
  const std::string mode = node.text("sampling_mode", "DEFAULT");
  const bool is_nearest = way == "NEAREST_NEIGHBOR";
  const V given = !is_nearest && !is_float(node.dtype(x)) ? c.cast(x, DType::kFloat32) : x;
  const build::ResizeOptions options = is_nearest ? nearest("round_prefer_ceil") : linear();
  node.set_cast(0, resized_along(node, given, to, axes, mode, options));
}

}  // namespace tensormill::frontend::coreml
