// Custom operators of MediaPipe that cut a part of a picture, turned upright, by landmarks that were found in
// it: the second versions, whose matrices are of the middles of pixels.
#include <cmath>

#include "compiler/frontend/tflite/converters/custom_options.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::tflite {

namespace {

void check_version(const NodeContext& node) {
  if (node.version() != 2)
    node.unsupported("version", std::to_string(node.version()) + " has another form; 2 is implemented");
}

/// The rows of an operand [1,rows,columns], and how many there are.
V rows_of_one(NodeContext& node, size_t index, int64_t least_columns) {
  const V x = node.real(index);
  const ir::SymShape shape = node.shape(x);
  const bool is_good = shape.size() == 3 && shape.is_constant() && shape[0].hint() == 1 &&
                       shape[1].hint() >= 1 && shape[2].hint() >= least_columns;
  if (!is_good) node.invalid("operand " + std::to_string(index) + " has shape " + to_string(shape));
  return Compose(node).reshape(x, {shape[1], shape[2]});
}

V column(Compose& c, V rows, int64_t index) { return c.slice(rows, 1, index, 1); }

/// The first two rows of a matrix [1,4,4], each number as [1,1].
struct Affine {
  V x[4], y[4];
};
Affine affine_of(NodeContext& node, size_t index) {
  const V matrix = rows_of_one(node, index, 4);
  Compose c(node);
  if (node.shape(matrix)[0].hint() < 2) node.invalid("the matrix has one row");
  Affine to;
  for (int64_t i = 0; i < 4; ++i) {
    const V both = column(c, matrix, i);
    to.x[i] = c.slice(both, 0, 0, 1);
    to.y[i] = c.slice(both, 0, 1, 1);
  }
  return to;
}

V applied(Compose& c, const V (&row)[4], V x, V y) {
  return c.add(c.add(c.mul(row[0], x), c.mul(row[1], y)), row[3]);
}

/// A turn: x' = cos x - sin y.
struct Turn {
  V cos, sin;
};

/// The turn that brings what goes from one landmark to the other to `target`: the difference of two angles,
/// by their cosines and sines. Landmarks in one place go to the right.
Turn turn_to(NodeContext& node, V from, V to, double target) {
  Compose c(node);
  const V d = c.sub(to, from);
  const V dx = column(c, d, 0), dy = column(c, d, 1);
  const V length = c.unary("sqrt", c.add(c.mul(dx, dx), c.mul(dy, dy)));
  const V is_point = c.binary("equal", length, c.number(length, 0));
  const V cos = c.where(is_point, c.number(dx, 1), c.div(dx, length));
  const V sin = c.where(is_point, c.number(dx, 0), c.div(dy, length));
  const double cos_to = std::cos(target), sin_to = std::sin(target);
  return {c.add(c.times(cos, cos_to), c.times(sin, sin_to)),
          c.sub(c.times(cos, sin_to), c.times(sin, cos_to))};
}

}  // namespace

// Landmarks [1,n,3] to the matrix [1,4,4] that takes places of an upright picture to those of the one that
// the landmarks are in: the box around some of them, larger by a factor.
void convert_landmarks_to_matrix(NodeContext& node) {
  check_version(node);
  const Json options = options_of(node);
  const V marks = rows_of_one(node, 0, 3);
  const int64_t count = node.shape(marks)[0].hint();
  Compose c(node);
  const auto mark = [&](const char* name) {
    return c.slice(marks, 0, place_of(node, options, name, count), 1);
  };
  const auto size_of = [&](const char* name) {
    const double size = number_of(node, options, name);
    if (!(size > 0)) node.invalid("option " + std::string(name) + " is not positive");
    return size;
  };
  const Turn turn = turn_to(node, mark("left_rotation_idx"), mark("right_rotation_idx"),
                            number_of(node, options, "target_rotation_radians"));
  const ir::Ints subset = places_of(node, options, "subset_idxs", count);
  if (subset.empty()) node.invalid("option subset_idxs is empty");
  const V some = c.gather(marks, c.ints(subset, {static_cast<int64_t>(subset.size())}), 0);
  const V x = column(c, some, 0), y = column(c, some, 1);
  const V turned_x = c.sub(c.mul(turn.cos, x), c.mul(turn.sin, y));
  const V turned_y = c.add(c.mul(turn.sin, x), c.mul(turn.cos, y));
  const auto most = [&](const char* op, V values) { return c.reduce(op, values, {0}, true); };
  const V right = most("reduce_max", turned_x), left = most("reduce_min", turned_x);
  const V bottom = most("reduce_max", turned_y), top = most("reduce_min", turned_y);
  const V middle_x = c.times(c.add(right, left), 0.5), middle_y = c.times(c.add(bottom, top), 0.5);
  const double width = size_of("output_width"), height = size_of("output_height");
  const V scale_x = c.times(c.sub(right, left), size_of("scale_x") / width);
  const V scale_y = c.times(c.sub(bottom, top), size_of("scale_y") / height);
  // The middle is half of the size away from the corner.
  const V from_x = c.sub(middle_x, c.times(scale_x, width / 2));
  const V from_y = c.sub(middle_y, c.times(scale_y, height / 2));
  const V zero = c.times(scale_x, 0), one = c.plus(zero, 1);
  const V back = c.unary("neg", turn.sin);
  const V whole =
      c.concat({c.mul(turn.cos, scale_x), c.mul(turn.sin, scale_y), zero,
                c.add(c.mul(turn.cos, from_x), c.mul(turn.sin, from_y)), c.mul(back, scale_x),
                c.mul(turn.cos, scale_y), zero, c.add(c.mul(back, from_x), c.mul(turn.cos, from_y)), zero,
                zero, one, zero, zero, zero, zero, one},
               1);
  node.set_real(0, c.reshape(whole, {1, 4, 4}));
}

// Landmarks [1,n,2 or 3] by the matrix [1,4,4]; a third number stays.
void convert_transform_landmarks(NodeContext& node) {
  check_version(node);
  Compose c(node);
  const V marks = rows_of_one(node, 0, 2);
  const ir::SymShape shape = node.shape(marks);
  if (shape[1].hint() > 3) node.invalid("landmarks of " + to_string(shape[1]) + " numbers");
  const Affine matrix = affine_of(node, 1);
  const V x = column(c, marks, 0), y = column(c, marks, 1);
  std::vector<V> parts{applied(c, matrix.x, x, y), applied(c, matrix.y, x, y)};
  if (shape[1].hint() == 3) parts.push_back(column(c, marks, 2));
  node.set_real(0, c.reshape(c.concat(parts, 1), {1, shape[0], shape[1]}));
}

// A picture [1,h,w,c] at the places to which the matrix takes those of the result, between the four pixels
// around each; outside it is 0.
void convert_transform_tensor_bilinear(NodeContext& node) {
  check_version(node);
  const Json options = options_of(node);
  Compose c(node);
  constexpr int64_t kMostExtent = 1 << 14;
  const int64_t height = place_of(node, options, "output_height", kMostExtent);
  const int64_t width = place_of(node, options, "output_width", kMostExtent);
  const V picture = node.real(0);
  const ir::SymShape shape = node.shape(picture);
  if (shape.size() != 4 || !shape.is_constant() || shape[0].hint() != 1 || num_elements(shape).hint() == 0)
    node.invalid("a picture of shape " + to_string(shape));
  const Affine matrix = affine_of(node, 1);
  const auto places = [&](const V(&row)[4], const ir::SymInt& extent) {
    // The middle of a pixel is half a pixel from its corner, on both sides.
    const V first = c.minus(c.add(row[3], c.times(c.add(row[0], row[1]), 0.5)), 0.5);
    const V moved[4] = {row[0], row[1], row[2], first};
    const V at = applied(c, moved, c.cast(c.iota(width, {1, width}), DType::kFloat32),
                         c.cast(c.iota(height, {height, 1}), DType::kFloat32));
    const V inside =
        c.binary("and", c.binary("less_equal", c.number(at, 0), at),
                 c.binary("less_equal", at, c.number(at, static_cast<double>(extent.hint() - 1))));
    return std::pair(at, inside);
  };
  const auto [x, x_inside] = places(matrix.x, shape[2]);
  const auto [y, y_inside] = places(matrix.y, shape[1]);
  const V inside = c.binary("and", x_inside, y_inside);
  const auto settled = [&](V at) { return c.where(inside, at, c.number(at, 0)); };
  const V left = c.unary("floor", settled(x)), upper = c.unary("floor", settled(y));
  const V pixels = c.reshape(picture, {shape[1] * shape[2], shape[3]});
  const auto pixel = [&](int64_t down, int64_t right) {
    const auto clipped = [&](V at, int64_t by, const ir::SymInt& extent) {
      return c.cast(c.clip(c.plus(at, static_cast<double>(by)), 0, static_cast<double>(extent.hint() - 1)),
                    DType::kInt64);
    };
    const V row = clipped(upper, down, shape[1]), place = clipped(left, right, shape[2]);
    return c.gather(pixels, c.add(c.times(row, static_cast<double>(shape[2].hint())), place), 0);
  };
  const auto weight = [&](V at, V low) { return c.unsqueeze(c.sub(settled(at), low), 2); };
  const V from_left = weight(x, left), from_upper = weight(y, upper);
  const auto between = [&](V a, V b, V part) { return c.add(a, c.mul(c.sub(b, a), part)); };
  const V mixed = between(between(pixel(0, 0), pixel(0, 1), from_left),
                          between(pixel(1, 0), pixel(1, 1), from_left), from_upper);
  const V result = c.where(c.unsqueeze(inside, 2), mixed, c.number(mixed, 0));
  node.set_real(0, c.reshape(result, {1, height, width, shape[3]}));
}

}  // namespace tensormill::frontend::tflite
