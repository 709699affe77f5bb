// Colors of pictures [...,3]: hue, saturation and value, and what is changed of them.
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// Each [...,1]; `range` is the largest part of the color less the smallest.
struct Hsv {
  V hue, saturation, value, range;
};

void check_colors(const NodeContext& node, V x) {
  const ir::SymShape shape = node.shape(x);
  if (shape.empty() || !ir::demand(ir::Relation::kEqual, shape.back(), 3))
    node.invalid("colors of shape " + to_string(shape) + ", expected three parts along the last axis");
}

/// The hue is a part of a turn, 0 for grey.
Hsv hsv_of(NodeContext& node, V x) {
  Compose c(node);
  check_colors(node, x);
  const int64_t last = node.rank(x) - 1;
  const V r = c.slice(x, last, 0, 1), g = c.slice(x, last, 1, 1), b = c.slice(x, last, 2, 1);
  Hsv made;
  made.value = c.reduce("reduce_max", x, {last}, true);
  made.range = c.sub(made.value, c.reduce("reduce_min", x, {last}, true));
  const V zero = c.number(x, 0), one = c.number(x, 1);
  const V has_value = c.binary("greater", made.value, zero), has_hue = c.binary("greater", made.range, zero);
  made.saturation = c.where(has_value, c.div(made.range, c.where(has_value, made.value, one)), zero);
  const V norm = c.div(c.number(x, 1.0 / 6), c.where(has_hue, made.range, one));
  const auto side = [&](V from, V to, double begin) { return c.plus(c.mul(norm, c.sub(to, from)), begin); };
  const V of_green_or_blue =
      c.where(c.binary("equal", g, made.value), side(r, b, 2.0 / 6), side(g, r, 4.0 / 6));
  const V hue = c.where(c.binary("equal", r, made.value), side(b, g, 0), of_green_or_blue);
  const V turned = c.where(c.binary("less", hue, zero), c.plus(hue, 1), hue);
  made.hue = c.where(has_hue, turned, zero);
  return made;
}

/// Colors of a hue whose largest part is `value`, the smallest one `range` less.
V rgb_of(NodeContext& node, V hue, V range, V value) {
  Compose c(node);
  const V turn = c.times(hue, 6);
  const auto apart = [&](double from) { return c.unary("abs", c.minus(turn, from)); };
  const V red = c.minus(apart(3), 1), green = c.sub(c.number(hue, 2), apart(2)),
          blue = c.sub(c.number(hue, 2), apart(4));
  const V parts = c.clip(c.concat({red, green, blue}, node.rank(hue) - 1), 0, 1);
  return c.sub(value, c.mul(range, c.sub(c.number(hue, 1), parts)));
}

/// A picture in float32 at least, as TensorFlow changes it.
template <typename Change>
void set_changed(NodeContext& node, const Change& change) {
  Compose c(node);
  const V x = node.input(0);
  const DType wide = node.dtype(x) == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  node.set_output(0, c.cast(change(c.cast(x, wide)), node.dtype(x)));
}

V number_like(NodeContext& node, size_t operand, V like) {
  Compose c(node);
  return c.reshape(c.cast(node.input(operand), node.dtype(like)), {});
}

}  // namespace

void convert_rgb_to_hsv(NodeContext& node) {
  set_changed(node, [&](V x) {
    const Hsv made = hsv_of(node, x);
    return Compose(node).concat({made.hue, made.saturation, made.value}, node.rank(x) - 1);
  });
}

void convert_hsv_to_rgb(NodeContext& node) {
  set_changed(node, [&](V x) {
    Compose c(node);
    check_colors(node, x);
    const int64_t last = node.rank(x) - 1;
    const V value = c.slice(x, last, 2, 1);
    return rgb_of(node, c.slice(x, last, 0, 1), c.mul(c.slice(x, last, 1, 1), value), value);
  });
}

// The hue is turned on, by a part of a turn.
void convert_adjust_hue(NodeContext& node) {
  set_changed(node, [&](V x) {
    Compose c(node);
    const Hsv made = hsv_of(node, x);
    const V turned = c.add(made.hue, number_like(node, 1, x));
    return rgb_of(node, c.sub(turned, c.unary("floor", turned)), made.range, made.value);
  });
}

void convert_adjust_saturation(NodeContext& node) {
  set_changed(node, [&](V x) {
    Compose c(node);
    const Hsv made = hsv_of(node, x);
    const V saturation = c.clip(c.mul(made.saturation, number_like(node, 1, x)), 0, 1);
    return rgb_of(node, made.hue, c.mul(saturation, made.value), made.value);
  });
}

// Each channel's distance from its mean over the picture.
void convert_adjust_contrast(NodeContext& node) {
  set_changed(node, [&](V x) {
    Compose c(node);
    const int64_t rank = node.rank(x);
    if (rank < 3) node.invalid("a picture of shape " + to_string(node.shape(x)));
    const V mean = c.reduce("reduce_mean", x, {rank - 3, rank - 2}, true);
    return c.add(c.mul(c.sub(x, mean), number_like(node, 1, x)), mean);
  });
}

}  // namespace tensormill::frontend::tensorflow
