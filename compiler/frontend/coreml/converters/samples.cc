// Pictures read at places that tensors name: parts of them, turned ones, and any.
#include <algorithm>

#include "compiler/build/pictures/grid.h"
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

void check_picture(NodeContext& node, V x) {
  if (node.rank(x) != 4) node.invalid("the input has rank " + std::to_string(node.rank(x)) + ", expected 4");
}

/// Where coordinates in [-1, 1] lie on an axis: those of the middles, or of the edges, of its ends.
V unit_place(Compose& c, V at, const ir::SymInt& extent, bool align_corners) {
  const V size = c.extent(at, extent);
  if (align_corners) return c.mul(c.times(c.plus(at, 1), 0.5), c.minus(size, 1));
  return c.times(c.minus(c.mul(c.plus(at, 1), size), 1), 0.5);
}

/// How places outside of a picture are read.
struct Padding {
  std::string mode;  ///< constant, border, reflection, symmetric
  double value = 0;
};

/// x read at places in elements, both of float32.
V sampled(NodeContext& node, V x, V at_y, V at_x, const Padding& padding, bool is_nearest) {
  Compose c(node);
  const ir::SymShape s = node.shape(x);
  const bool is_constant = padding.mode == "constant";
  build::Grid map(node, x, is_constant ? std::optional<double>(padding.value) : std::nullopt);
  if (padding.mode == "reflection" || padding.mode == "symmetric") {
    at_y = map.reflected(at_y, s[2], padding.mode == "symmetric");
    at_x = map.reflected(at_x, s[3], padding.mode == "symmetric");
  }
  if (!is_constant) {
    at_y = map.clamped(at_y, s[2]);
    at_x = map.clamped(at_x, s[3]);
  }
  if (is_nearest) return map.taken(c.unary("round", at_y), c.unary("round", at_x));
  return map.between(at_y, at_x);
}

Padding padding_of(NodeContext& node) {
  Padding padding{node.text("padding_mode"), node.real("padding_value", 0)};
  const bool is_known = padding.mode == "constant" || padding.mode == "border" ||
                        padding.mode == "reflection" || padding.mode == "symmetric";
  if (!is_known) node.unsupported("padding_mode", "\"" + padding.mode + "\" is not implemented");
  return padding;
}

bool reads_nearest(NodeContext& node) {
  const std::string mode = node.text("sampling_mode");
  if (mode != "bilinear" && mode != "nearest")
    node.unsupported("sampling_mode", "\"" + mode + "\" is not implemented");
  return mode == "nearest";
}

}  // namespace

// Coordinates [B,H,W,2]: x and y.
void convert_resample(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x"), given = node.tensor("coordinates");
  check_picture(node, x);
  if (node.rank(given) != 4 || !ir::demand(ir::Relation::kEqual, node.shape(given)[3], 2))
    node.invalid("coordinates of shape " + to_string(node.shape(given)));
  const std::string mode = node.text("coordinates_mode");
  const bool align = node.flag("align_corners");
  const V places = c.cast(given, DType::kFloat32);
  const auto along = [&](int64_t index, const ir::SymInt& extent) {
    const V at = c.squeeze(c.slice(places, 3, index, 1), 3);
    if (mode == "unnormalized") return at;
    if (mode == "normalized_minus_one_to_one") return unit_place(c, at, extent, align);
    if (mode == "normalized_zero_to_one") return unit_place(c, c.minus(c.times(at, 2), 1), extent, align);
    node.unsupported("coordinates_mode", "\"" + mode + "\" is not implemented");
  };
  const ir::SymShape s = node.shape(x);
  const V at_x = along(0, s[3]), at_y = along(1, s[2]);
  node.set_cast(0,
                sampled(node, c.cast(x, DType::kFloat32), at_y, at_x, padding_of(node), reads_nearest(node)));
}

// A matrix [a0,a1,a2,b0,b1,b2] of each picture, or one of all: x' = a0 x + a1 y + a2, y' likewise.
void convert_affine(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x"), matrix = c.cast(node.tensor("transform_matrix"), DType::kFloat32);
  check_picture(node, x);
  const ir::SymShape s = node.shape(x);
  if (node.rank(matrix) != 2 || !ir::demand(ir::Relation::kEqual, node.shape(matrix)[1], 6))
    node.invalid("matrices of shape " + to_string(node.shape(matrix)));
  if (node.text("coordinates_mode") != "normalized_minus_one_to_one" || !node.flag("align_corners"))
    node.unsupported("coordinates_mode", "others than aligned ones from -1 to 1 are not implemented");
  const int64_t height = node.integer("output_height"), width = node.integer("output_width");
  if (height < 1 || width < 1)
    node.invalid("a size of " + std::to_string(height) + " x " + std::to_string(width));
  // -1 to 1 along an axis of the result.
  const auto steps = [&](int64_t count, size_t axis) {
    std::vector<double> places;
    for (int64_t i = 0; i < count; ++i)
      places.push_back(count == 1 ? -1 : 2 * static_cast<double>(i) / static_cast<double>(count - 1) - 1);
    ir::SymShape shape(3, 1);
    shape[axis] = count;
    return c.doubles(DType::kFloat32, places, shape);
  };
  const V down = steps(height, 1), over = steps(width, 2);
  const auto turned = [&](int64_t row) {
    const auto entry = [&](int64_t i) { return c.unsqueeze(c.slice(matrix, 1, row + i, 1), 2); };
    const V sum = c.add(c.add(c.mul(entry(0), over), c.mul(entry(1), down)), entry(2));
    return c.expand(sum, {s[0], height, width});
  };
  const V at_x = unit_place(c, turned(0), s[3], true), at_y = unit_place(c, turned(3), s[2], true);
  node.set_cast(0,
                sampled(node, c.cast(x, DType::kFloat32), at_y, at_x, padding_of(node), reads_nearest(node)));
}

namespace {

/// Boxes by their rows and columns.
struct Boxes {
  V top, left, bottom, right;  ///< [N]
};

/// boxes [N,4] in elements of the picture.
Boxes boxes_of(NodeContext& node, V boxes, const ir::SymShape& picture) {
  Compose c(node);
  const std::string layout = node.text("box_coordinate_mode", "CORNERS_HEIGHT_FIRST");
  const bool is_center = layout.starts_with("CENTER_SIZE_"), is_width = layout.ends_with("_WIDTH_FIRST");
  if (!(is_center || layout.starts_with("CORNERS_")) || !(is_width || layout.ends_with("_HEIGHT_FIRST")))
    node.unsupported("box_coordinate_mode", "\"" + layout + "\" is not implemented");
  const bool is_normal = node.flag("normalized_coordinates", false);
  const double scale = node.real("spatial_scale", 1);
  const auto entry = [&](int64_t i) { return c.squeeze(c.slice(boxes, 1, i, 1), 1); };
  const auto ends = [&](int64_t i, const ir::SymInt& extent) {
    V first = entry(i), last = entry(i + 2);
    if (is_center) {
      const V half = c.times(last, 0.5);
      last = c.add(first, half);
      first = c.sub(first, half);
    }
    const auto placed = [&](V at) {
      if (is_normal) at = c.mul(at, c.minus(c.extent(at, extent), 1));
      return scale == 1 ? at : c.times(at, scale);
    };
    return std::pair(placed(first), placed(last));
  };
  const auto [top, bottom] = ends(is_width ? 1 : 0, picture[2]);
  const auto [left, right] = ends(is_width ? 0 : 1, picture[3]);
  return {top, left, bottom, right};
}

/// Places [N,count] between the ends [N] of boxes, as a sampling mode has them.
V places_between(NodeContext& node, V first, V last, int64_t count) {
  Compose c(node);
  const std::string mode = node.text("sampling_mode", "DEFAULT");
  const auto parts = static_cast<double>(count);
  const V begin = c.unsqueeze(first, 1), span = c.unsqueeze(c.sub(last, first), 1);
  std::vector<double> steps;
  for (int64_t i = 0; i < count; ++i) steps.push_back(static_cast<double>(i));
  const auto row = [&](double offset, double divisor) {
    std::vector<double> factors;
    for (const double each : steps) factors.push_back((each + offset) / divisor);
    return c.doubles(DType::kFloat32, factors, {1, count});
  };
  if (mode == "STRICT_ALIGN_CORNERS" || mode == "ALIGN_CORNERS") {
    const bool is_middle = count == 1 && mode == "ALIGN_CORNERS";
    return c.add(begin, c.mul(row(is_middle ? 0.5 : 0, std::max(parts - 1, 1.0)), span));
  }
  if (mode == "OFFSET_CORNERS")
    return c.add(begin, c.mul(row(0.5, parts), c.binary("max", span, c.number(span, 1))));
  if (mode != "DEFAULT" && mode != "UNALIGN_CORNERS")
    node.unsupported("sampling_mode", "\"" + mode + "\" is not implemented");
  // Of all elements from the first to the last.
  const bool is_default = mode == "DEFAULT";
  V away = c.mul(row(is_default ? 0 : 0.5, parts), c.plus(span, 1));
  if (!is_default) away = c.minus(away, 0.5);
  return c.add(begin, c.binary("max", c.binary("min", away, span), c.number(away, 0)));
}

/// pictures [N,C,H,W], one a box; places outside of them are `outside`.
V crops_of(NodeContext& node, V pictures, const Boxes& boxes, double outside) {
  Compose c(node);
  const ir::SymShape s = node.shape(pictures);
  const int64_t height = node.integer("target_height", 1), width = node.integer("target_width", 1);
  if (height < 1 || width < 1 || height > build::kMaxListed || width > build::kMaxListed)
    node.invalid("a size of " + std::to_string(height) + " x " + std::to_string(width));
  const ir::SymShape whole{s[0], height, width};
  const V at_y = c.expand(c.unsqueeze(places_between(node, boxes.top, boxes.bottom, height), 2), whole);
  const V at_x = c.expand(c.unsqueeze(places_between(node, boxes.left, boxes.right, width), 1), whole);
  build::Grid map(node, pictures, std::nullopt);
  const V values = map.between(map.clamped(at_y, s[2]), map.clamped(at_x, s[3]));
  const auto within = [&](V at, const ir::SymInt& extent) {
    return c.binary("and", c.binary("greater_equal", at, c.number(at, 0)),
                    c.binary("less_equal", at, c.minus(c.extent(at, extent), 1)));
  };
  const V is_in = c.binary("and", within(at_y, s[2]), within(at_x, s[3]));
  return c.where(c.unsqueeze(is_in, 1), values, c.number(values, outside));
}

/// One picture a box: those that `which` says, or each in its turn.
V pictures_of(NodeContext& node, V x, V which) {
  Compose c(node);
  return c.gather(x, c.cast(which, DType::kInt64), 0);
}

/// roi [N,1,4,1,1]: each box of every picture; [N,1,5,1,1]: of the one that its first number says.
void crop_regions(NodeContext& node, V x, double outside) {
  Compose c(node);
  const V given = c.cast(node.tensor("roi"), DType::kFloat32);
  const ir::SymShape shape = node.shape(given), s = node.shape(x);
  if (shape.size() != 5 || !shape[2].is_constant() || (shape[2].hint() != 4 && shape[2].hint() != 5))
    node.invalid("boxes of shape " + to_string(shape));
  const ir::SymInt& count = shape[0];
  const int64_t numbers = shape[2].hint();
  const V rows = c.reshape(given, {count, numbers});
  if (numbers == 5) {
    const V which = c.squeeze(c.slice(rows, 1, 0, 1), 1);
    const Boxes boxes = boxes_of(node, c.slice(rows, 1, 1, 4), s);
    return node.set_cast(0, c.unsqueeze(crops_of(node, pictures_of(node, x, which), boxes, outside), 1));
  }
  // Boxes and pictures in all their pairs.
  const V all = c.reshape(c.expand(c.unsqueeze(x, 0), {count, s[0], s[1], s[2], s[3]}),
                          {count * s[0], s[1], s[2], s[3]});
  const V each = c.reshape(c.expand(c.unsqueeze(rows, 1), {count, s[0], 4}), {count * s[0], 4});
  const V crops = crops_of(node, all, boxes_of(node, each, s), outside);
  const ir::SymShape size = node.shape(crops);
  node.set_cast(0, c.reshape(crops, {count, s[0], size[1], size[2], size[3]}));
}

}  // namespace

// Since iOS 17 boxes [N,4] and the number of the picture of each.
void convert_crop_resize(NodeContext& node) {
  Compose c(node);
  const V x = c.cast(node.tensor("x"), DType::kFloat32);
  check_picture(node, x);
  const double outside = node.real("pad_value", 0);
  if (node.has("roi")) return crop_regions(node, x, outside);
  const V boxes = c.cast(node.tensor("boxes"), DType::kFloat32);
  if (node.rank(boxes) != 2 || !ir::demand(ir::Relation::kEqual, node.shape(boxes)[1], 4))
    node.invalid("boxes of shape " + to_string(node.shape(boxes)));
  const V which = node.has("box_indices") ? node.tensor("box_indices") : c.iota(node.shape(boxes)[0]);
  const Boxes own = boxes_of(node, boxes, node.shape(x));
  node.set_cast(0, crops_of(node, pictures_of(node, x, which), own, outside));
}

}  // namespace tensormill::frontend::coreml
