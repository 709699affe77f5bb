// Pictures: resizing, parts of them, and boxes.
#include <algorithm>

#include "compiler/build/pictures/filter_axis.h"
#include "compiler/build/pictures/grid.h"
#include "compiler/build/pictures/resize_maps.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

build::ResizeRule rule_of(NodeContext& node) {
  return {node.flag("align_corners", false), node.flag("half_pixel_centers", false)};
}

}  // namespace

// The result is float32, whatever goes in.
void convert_resize_bilinear(NodeContext& node) {
  const ir::SymShape size = node.extents_at(1, "size");
  const V map = node.first(node.cast(node.input(0), DType::kFloat32));
  node.set_output(0, node.last(build::resize_bilinear(node, map, size, rule_of(node))));
}

void convert_resize_nearest(NodeContext& node) {
  const ir::SymShape size = node.extents_at(1, "size");
  node.set_output(0, node.last(build::resize_nearest(node, node.first(node.input(0)), size, rule_of(node))));
}

// With half_pixel_centers a = -0.5, and what lies outside has no weight; else a = -0.75, and it is the edge.
void convert_resize_bicubic(NodeContext& node) {
  const ir::SymShape size = node.extents_at(1, "size");
  const build::ResizeRule rule = rule_of(node);
  if (rule.align_corners && rule.half_pixel_centers)
    node.invalid("align_corners and half_pixel_centers are both set");
  build::ResizeOptions options;
  options.mode = "cubic";
  options.cubic_steps = 1024;
  options.cubic = rule.half_pixel_centers ? -0.5 : -0.75;
  options.exclude_outside = rule.half_pixel_centers;
  options.coordinates = rule.align_corners        ? "align_corners"
                        : rule.half_pixel_centers ? "half_pixel"
                                                  : "asymmetric";
  const V map = node.first(node.cast(node.input(0), DType::kFloat32));
  node.set_output(0, node.last(build::resize_by(node, map, size, options)));
}

// Operands: pictures [b,H,W,C], size [2], scales [2], how far they are moved [2].
void convert_scale_and_translate(NodeContext& node) {
  Compose c(node);
  const ir::SymShape size = node.extents_at(1, "size");
  const bool antialias = node.flag("antialias", true);
  const std::string filter = node.text("kernel_type", "lanczos3");
  V map = node.first(node.cast(node.input(0), DType::kFloat32));
  const ir::SymShape shape = node.shape(map);
  if (shape.size() != 4 || size.size() != 2) node.invalid("pictures of shape " + to_string(shape));
  const V scales = c.reshape(node.input(2), {2}), shifts = c.reshape(node.input(3), {2});
  for (int64_t d = 0; d < 2; ++d) {
    const auto at = static_cast<size_t>(d);
    const build::FilterAxis axis{shape[at + 2], size[at], c.slice(scales, 0, d, 1), c.slice(shifts, 0, d, 1)};
    map = build::filtered(node, map, d + 2, axis, filter, antialias);
  }
  node.set_output(0, node.last(map));
}

void convert_resize_area(NodeContext& node) {
  const ir::SymShape size = node.extents_at(1, "size");
  const bool align_corners = node.flag("align_corners", false);
  V map = node.first(node.cast(node.input(0), DType::kFloat32));
  if (node.rank(map) != 4 || size.size() != 2)
    node.invalid("pictures of shape " + to_string(node.shape(map)));
  for (size_t d = 0; d < 2; ++d)
    map = build::area_means(node, map, static_cast<int64_t>(d) + 2, size[d], align_corners);
  node.set_output(0, node.last(map));
}

// Operands: pictures [b,H,W,C], of each or of all the eight numbers of a projection from places of the result
// to those of the picture, size [2], in version 3 what stands outside.
void convert_projective_transform(NodeContext& node) {
  Compose c(node);
  const std::string kind = node.text("interpolation"), mode = node.text("fill_mode", "CONSTANT");
  const V given = node.input(0), numbers = node.input(1);
  const ir::SymShape shape = node.shape(given), own = node.shape(numbers);
  const ir::SymShape size = node.extents_at(2, "output_shape");
  if (shape.size() != 4 || own.size() != 2 || size.size() != 2 || !same(own[1], 8))
    node.invalid("pictures of shape " + to_string(shape) + ", projections of " + to_string(own));
  if (kind != "NEAREST" && kind != "BILINEAR") node.invalid("interpolation is \"" + kind + "\"");
  if (mode != "CONSTANT" && mode != "NEAREST" && mode != "REFLECT")
    node.unsupported("fill_mode", "\"" + mode + "\" is not implemented");
  const V map = node.first(node.cast(given, DType::kFloat32));
  const double outside = node.op() == "ImageProjectiveTransformV3" ? node.known_real(3, "fill_value") : 0;
  build::Grid grid(node, map, mode == "CONSTANT" ? std::optional(outside) : std::nullopt);
  const V row = c.cast(c.positions(size[0], 1, 3), DType::kFloat32),
          column = c.cast(c.positions(size[1], 2, 3), DType::kFloat32);
  const auto number = [&](int64_t index) { return c.reshape(c.slice(numbers, 1, index, 1), {own[0], 1, 1}); };
  const auto line = [&](int64_t first) {
    return c.add(c.add(c.mul(number(first), column), c.mul(number(first + 1), row)),
                 first < 6 ? number(first + 2) : c.number(row, 1));
  };
  const V depth = line(6);
  const ir::SymShape to{shape[0], size[0], size[1]};
  const auto place = [&](int64_t first, const ir::SymInt& extent) {
    const V at = c.div(line(first), depth);
    return c.expand(mode == "REFLECT" ? grid.reflected(at, extent, true) : at, to);
  };
  const V y = place(3, shape[1]), x = place(0, shape[2]);
  // Half away from zero, as std::round has it.
  const auto rounded = [&](V at) {
    return c.mul(c.unary("sign", at), c.unary("floor", c.plus(c.unary("abs", at), 0.5)));
  };
  const V made = kind == "NEAREST" ? grid.taken(rounded(y), rounded(x)) : grid.between(y, x);
  node.set_output(0, node.cast(node.last(made), node.dtype(given)));
}

namespace {

/// Places along one axis of each box's part.
struct Places {
  V low, high;  ///< i64 [boxes,count], within the axis
  V weight;     ///< f32 [boxes,count], of `high`
  V is_inside;  ///< bool [boxes,count]
};

Places places_of(NodeContext& node, V first, V last, const ir::SymInt& extent, int64_t count,
                 bool is_nearest) {
  Compose c(node);
  const V most = c.extent(first, extent - 1);
  std::vector<double> steps;
  for (int64_t i = 0; i < count; ++i) steps.push_back(static_cast<double>(i));
  V place = ir::kAbsent;
  if (count > 1) {
    const V step = c.div(c.mul(c.sub(last, first), most), c.number(first, static_cast<double>(count - 1)));
    place = c.add(c.mul(first, most), c.mul(step, c.doubles(DType::kFloat32, steps, {1, count})));
  } else {
    place = c.times(c.mul(c.add(first, last), most), 0.5);
  }
  Places all;
  all.is_inside = c.binary("and", c.binary("greater_equal", place, c.number(place, 0)),
                           c.binary("less_equal", place, most));
  const auto within = [&](V x) {
    const V bounded = c.binary("min", c.binary("max", x, c.number(x, 0)), most);
    return c.cast(bounded, DType::kInt64);
  };
  if (is_nearest) {
    // Half away from zero, as std::round has it.
    all.low = all.high = within(c.unary("floor", c.plus(place, 0.5)));
    all.weight = c.number(place, 0);
    return all;
  }
  const V low = c.unary("floor", place);
  all.low = within(low);
  all.high = within(c.unary("ceil", place));
  all.weight = c.sub(place, low);
  return all;
}

}  // namespace

// Operands: pictures [b,H,W,C], boxes [n,4] (y1, x1, y2, x2 as parts of the extents), their pictures [n],
// size [2].
void convert_crop_and_resize(NodeContext& node) {
  Compose c(node);
  const std::string method = node.text("method", "bilinear");
  if (method != "bilinear" && method != "nearest") node.invalid("method is \"" + method + "\"");
  const double outside = node.real("extrapolation_value", 0);
  const V pictures = node.cast(node.input(0), DType::kFloat32), boxes = node.input(1);
  const ir::SymShape shape = node.shape(pictures), box = node.shape(boxes);
  const ir::Ints size = node.known_ints(3, "crop_size");
  if (shape.size() != 4 || box.size() != 2 || size.size() != 2 || !same(box[1], 4))
    node.invalid("pictures of shape " + to_string(shape) + " with boxes of " + to_string(box));
  if (std::min(size[0], size[1]) < 1 || std::max(size[0], size[1]) > (1 << 16))
    node.invalid("a crop of " + to_string(size));
  const auto side = [&](int64_t index) { return c.slice(boxes, 1, index, 1); };
  const bool is_nearest = method == "nearest";
  const Places y = places_of(node, side(0), side(2), shape[1], size[0], is_nearest);
  const Places x = places_of(node, side(1), side(3), shape[2], size[1], is_nearest);
  const ir::SymInt& n = box[0];
  const V flat = c.reshape(pictures, {shape[0] * shape[1] * shape[2], shape[3]});
  const V picture = c.reshape(c.cast(node.input(2), DType::kInt64), {n, 1, 1});
  const auto along_y = [&](V value) { return c.reshape(value, {n, size[0], 1}); };
  const auto along_x = [&](V value) { return c.reshape(value, {n, 1, size[1]}); };
  const auto pixels = [&](V row, V column) {
    const V line = c.add(c.mul(picture, c.dims({shape[1]}, {})), along_y(row));
    return c.gather(flat, c.add(c.mul(line, c.dims({shape[2]}, {})), along_x(column)), 0);
  };
  const auto mixed = [&](V a, V b, V weight) { return c.add(a, c.mul(c.sub(b, a), weight)); };
  V result = pixels(y.low, x.low);
  if (!is_nearest) {
    const V wide = c.reshape(x.weight, {n, 1, size[1], 1}), high = c.reshape(y.weight, {n, size[0], 1, 1});
    const V top = mixed(result, pixels(y.low, x.high), wide);
    result = mixed(top, mixed(pixels(y.high, x.low), pixels(y.high, x.high), wide), high);
  }
  const V is_inside = c.binary("and", along_y(y.is_inside), along_x(x.is_inside));
  node.set_output(0, c.where(c.unsqueeze(is_inside, 3), result, c.number(result, outside)));
}

}  // namespace tensormill::frontend::tensorflow
