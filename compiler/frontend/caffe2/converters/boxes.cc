// Boxes of detectors as networks say them, those of them that stay, and the places of key points.
#include "compiler/frontend/caffe2/converters/boxes.h"

#include <cmath>
#include <limits>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/moves/places.h"
#include "compiler/build/pictures/roi_pool.h"

namespace tensormill::frontend::caffe2 {

build::BoxCoding coding_of(NodeContext& node) {
  build::BoxCoding coding;
  coding.added = node.flag("legacy_plus_one", true) ? 1 : 0;
  coding.most_log = std::log(1000.0 / 16);
  return coding;
}

void refuse_rotated(NodeContext& node) {
  if (node.flag("rotated", false)) node.unsupported("rotated", "boxes with an angle are not implemented");
}

V whole(Compose& c, V x) { return c.cast(c.cast(x, DType::kInt64), c.dtype(x)); }

V how_often(Compose& c, V x, const ir::SymInt& count) {
  const V own = c.reshape(x, {1, num_elements(c.shape(x))});
  const V equal = c.binary("equal", own, c.iota(count, {count, 1}));
  return c.reduce("reduce_sum", c.cast(equal, DType::kInt64), {1}, false);
}

V sums_before(NodeContext& node, V row) {
  return node.add("cumsum", {row},
                  {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}, {"reverse", int64_t{0}}});
}

V order_of(NodeContext& node, V row, bool is_ascending) {
  return build::ordered_places(node, row, 0, node.shape(row)[0], is_ascending);
}

// Operands: boxes [m,4], or [m,5] whose first number says the picture, what is said of them [m,4*classes],
// and of the pictures their height, width and scale [b,3]. Results: boxes in the pictures before they were
// scaled, and how many are of each picture.
void convert_bbox_transform(NodeContext& node) {
  Compose c(node);
  refuse_rotated(node);
  const V boxes = node.operand(0), deltas = node.operand(1), info = node.operand(2);
  const ir::SymShape shape = node.shape(boxes), said = node.shape(deltas), pictures = node.shape(info);
  const bool fits = shape.size() == 2 && said.size() == 2 && pictures.size() == 2 && pictures[1] == 3 &&
                    shape[1].is_constant() && said[1].is_constant() &&
                    (shape[1].hint() == 4 || shape[1].hint() == 5) && said[1].hint() % 4 == 0;
  if (!fits)
    node.invalid("boxes of shape " + to_string(shape) + ", what is said of them of " + to_string(said) +
                 ", pictures of " + to_string(pictures));
  build::BoxCoding coding = coding_of(node);
  if (!node.flag("correct_transform_coords", true))
    node.unsupported("correct_transform_coords", "boxes that reach a pixel further are not implemented");
  const ir::CheckedList<double> weights = node.reals("weights");
  if (!weights.empty() && weights.size() != 4)
    node.invalid("argument weights has " + std::to_string(weights.size()) + " numbers");
  for (size_t i = 0; i < weights.size(); ++i) coding.scales[i] = 1 / weights[i];
  const ir::SymInt& count = shape[0];
  const bool has_picture = shape[1].hint() == 5;
  const V which = has_picture ? c.cast(c.reshape(c.slice(boxes, 1, 0, 1), {count}), DType::kInt64)
                              : c.filled(DType::kInt64, {count}, 0);
  const V of = c.unsqueeze(c.gather(info, which, 0), 1);  // [m,1,3]
  const V scale = c.slice(of, 2, 2, 1);
  const auto limit = [&](int64_t index) {
    return c.minus(whole(c, c.plus(c.div(c.slice(of, 2, index, 1), scale), 0.5)), coding.added);
  };
  const V corners = c.div(c.unsqueeze(has_picture ? c.slice(boxes, 1, 1, 4) : boxes, 1), scale);
  const V moved =
      build::moved_boxes(node, corners, c.reshape(deltas, {count, said[1].hint() / 4, 4}), coding);
  const V inside = build::clipped_boxes(node, moved, limit(1), limit(0));
  const V shown = node.flag("apply_scale", true) ? c.mul(inside, scale) : inside;
  node.set_output(0, c.reshape(shown, said));
  if (node.has_output(1)) node.set_output(1, c.cast(how_often(c, which, pictures[0]), DType::kFloat32));
}

namespace {

/// Boxes that stay in each class, the best ones of all classes of each picture told.
class LimitedBoxes {
public:
  explicit LimitedBoxes(NodeContext& node) : node_(node), c_(node) {
    refuse_rotated(node);
    if (node.flag("soft_nms_enabled", false))
      node.unsupported("soft_nms_enabled", "scores that fall by overlaps are not implemented");
    const V scores = as_table(0), boxes = as_table(1);
    const ir::SymShape shape = node.shape(scores);
    const ir::SymInt numbers = node.shape(boxes)[1];
    is_shared_ = node.flag("cls_agnostic_bbox_reg", false);
    has_background_ = node.flag("input_boxes_include_bg_cls", true);
    if (!shape[1].is_constant() || shape[1].hint() < 2 || !numbers.is_constant())
      node.invalid("scores of shape " + to_string(shape));
    count_ = shape[0];
    classes_ = shape[1].hint() - 1;
    const int64_t wanted = is_shared_ ? 1 : classes_ + (has_background_ ? 1 : 0);
    if (numbers.hint() != 4 * wanted)
      node.invalid("scores of shape " + to_string(shape) + " with boxes of " + to_string(node.shape(boxes)));
    total_ = node.product(count_, classes_);
    scores_ = c_.transpose(c_.slice(scores, 1, has_background_ ? 1 : 0, classes_), {1, 0});
    boxes_ = by_class(boxes);
  }

  void convert() {
    set_pictures();
    choose();
    const V places = places_;
    node_.set_output(0, c_.gather(c_.reshape(scores_, {total_}), places, 0));
    node_.set_output(1, c_.gather(c_.reshape(boxes_, {total_, 4}), places, 0));
    const V label = c_.gather(labels_, places, 0);
    const bool tells_background = node_.flag("output_classes_include_bg_cls", true);
    node_.set_output(2, c_.cast(tells_background ? c_.plus(label, 1) : label, DType::kFloat32));
    const V picture = c_.gather(flat_pictures_, places, 0);
    if (node_.has_output(3)) node_.set_output(3, c_.cast(how_often(c_, picture, pictures_), DType::kFloat32));
    if (node_.has_output(4)) {
      const V box = c_.gather(flat(c_.iota(count_, {1, count_})), places, 0);
      node_.set_output(4, c_.cast(c_.sub(box, c_.gather(first_, picture, 0)), DType::kInt32));
    }
    if (node_.has_output(5)) {
      const V key = c_.add(c_.times(picture, static_cast<double>(classes_)), label);
      const V found = c_.reshape(how_often(c_, key, pictures_ * classes_), {pictures_, classes_});
      const V none = c_.filled(DType::kInt64, {pictures_, 1}, 0);
      node_.set_output(5, c_.cast(c_.concat({none, found}, 1), DType::kInt32));
    }
  }

private:
  /// [n,m], of which an operand may have two more axes of extent 1.
  V as_table(size_t index) {
    const V x = node_.operand(index);
    const ir::SymShape shape = node_.shape(x);
    if (shape.size() == 4 && shape[2] == 1 && shape[3] == 1) return c_.reshape(x, {shape[0], shape[1]});
    if (shape.size() != 2)
      node_.invalid("operand " + std::to_string(index) + " has shape " + to_string(shape));
    return x;
  }

  /// [classes,n,4].
  V by_class(V boxes) {
    if (is_shared_) return c_.expand(c_.unsqueeze(boxes, 0), {classes_, count_, 4});
    const V own = c_.slice(boxes, 1, has_background_ ? 4 : 0, classes_ * 4);
    return c_.transpose(c_.reshape(own, {count_, classes_, 4}), {1, 0, 2});
  }

  /// Of a number a box or a class, [1,n] or [classes,1]: that of each box of each class, in a row.
  V flat(V x) { return c_.reshape(c_.expand(x, {classes_, count_}), {total_}); }

  /// The picture of each box: operand 2 says how many there are of each.
  void set_pictures() {
    V own = c_.filled(DType::kInt64, {1, count_}, 0);
    first_ = c_.ints({0}, {1});
    if (node_.has_operand(2)) {
      const V splits = c_.cast(node_.operand(2), DType::kInt64);
      if (node_.rank(splits) != 1) node_.invalid("operand 2 is no row");
      pictures_ = node_.shape(splits)[0];
      first_ = sums_before(node_, splits);
      const V end = c_.reshape(c_.add(first_, splits), {pictures_, 1});
      const V is_behind = c_.binary("greater_equal", c_.iota(count_, {1, count_}), end);
      own = c_.reduce("reduce_sum", c_.cast(is_behind, DType::kInt64), {0}, true);
    }
    flat_pictures_ = flat(own);
    labels_ = flat(c_.iota(classes_, {classes_, 1}));
  }

  V kept() {
    const V none = c_.number(scores_, -std::numeric_limits<double>::infinity());
    build::BoxRows spec;
    spec.boxes = boxes_;
    spec.scores = c_.where(
        c_.binary("greater", scores_, c_.number(scores_, node_.real("score_thresh", 0.05))), scores_, none);
    if (!same(pictures_, 1)) spec.groups = c_.reshape(flat_pictures_, {classes_, count_});
    spec.overlap = build::above_overlap(node_.real("nms", 0.3));
    spec.added = node_.flag("legacy_plus_one", true) ? 1 : 0;
    return c_.reshape(build::kept_boxes(node_, spec), {total_});
  }

  /// The places of what is told among all boxes of all classes: by picture, by class, and the best ones
  /// first.
  void choose() {
    const V stays = kept(), scores = c_.reshape(scores_, {total_});
    const int64_t most = node_.integer("detections_per_im", 100);
    // Those that go belong to a picture behind the last one.
    const V none = c_.dims({pictures_}, {});
    const V own = c_.where(stays, flat_pictures_, none);
    V order = order_of(node_, scores, false);
    order = c_.gather(order, order_of(node_, c_.gather(own, order, 0), true), 0);
    const V picture = c_.gather(own, order, 0);
    V is_told = c_.binary("less", picture, none);
    if (most > 0) {
      const V begins = c_.gather(sums_before(node_, how_often(c_, own, pictures_ + 1)), picture, 0);
      const V rank = c_.sub(c_.iota(total_), begins);
      is_told =
          c_.binary("and", is_told, c_.binary("less", rank, c_.number(rank, static_cast<double>(most))));
    }
    const V key = c_.add(c_.times(picture, static_cast<double>(classes_)), c_.gather(labels_, order, 0));
    const V last = c_.dims({pictures_ * classes_}, {});
    const V sorted = order_of(node_, c_.where(is_told, key, last), true);
    const V found = c_.reduce("reduce_sum", c_.cast(is_told, DType::kInt64), {0}, true);
    places_ = build::bound_part(node_, c_.gather(order, sorted, 0), 0, found);
  }

  NodeContext& node_;
  Compose c_;
  bool is_shared_ = false, has_background_ = true;
  ir::SymInt count_, total_, pictures_ = 1;
  int64_t classes_ = 0;            ///< without the background
  V scores_ = ir::kAbsent;         ///< [classes,n]
  V boxes_ = ir::kAbsent;          ///< [classes,n,4]
  V first_ = ir::kAbsent;          ///< by picture: its first box
  V labels_ = ir::kAbsent;         ///< of each box of each class
  V flat_pictures_ = ir::kAbsent;  ///< the same
  V places_ = ir::kAbsent;
};

}  // namespace

// Operands: scores [n,classes], boxes [n,4*classes], how many are of each picture. Results: scores, boxes and
// classes of those that stay, how many are of each picture, their places in it, and how many of each class.
void convert_box_with_nms_limit(NodeContext& node) { LimitedBoxes(node).convert(); }

void convert_batch_permutation(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0), places = c.cast(node.operand(1), DType::kInt64);
  if (node.rank(places) != 1 || node.rank(x) < 1) node.invalid("operand 1 is no row");
  node.set_output(c.gather(x, places, 0));
}

// Boxes [n,5], whose first number says the picture.
void convert_roi_pool(NodeContext& node) {
  if (node.is_channels_last())
    node.unsupported("order", "maps whose channels stand last are not implemented");
  if (!node.flag("is_test", false))
    node.unsupported("is_test", "the places of the largest elements are made for training");
  build::RoiPool options{node.operand(0), node.operand(1), node.integer("pooled_h", 1),
                         node.integer("pooled_w", 1)};
  options.scale = node.real("spatial_scale", 1);
  node.set_output(build::roi_pool(node, options));
}

namespace {

/// The largest elements of maps [n,m,s,s] and those around them.
class Peaks {
public:
  Peaks(NodeContext& node, V maps) : c_(node), shape_(node.shape(maps)) {
    flat_ = c_.reshape(maps, {shape_[0], shape_[1], shape_[2] * shape_[3]});
    size_ = c_.dims({shape_[3]}, {});
    const V place = c_.cast(c_.arg_max(flat_, 2, true), DType::kInt64);
    row = c_.div(place, size_);
    column = c_.sub(place, c_.mul(row, size_));
  }

  /// So far from the largest one; behind an edge what is on the other side.
  V at(int64_t down, int64_t over) {
    return c_.gather_elements(flat_, c_.add(c_.mul(mirrored(row, down), size_), mirrored(column, over)), 2);
  }
  /// The part of the sum of all exponentials that the largest one has.
  V probability() {
    const V powers = c_.unary("exp", c_.sub(flat_, at(0, 0)));
    return c_.unary("reciprocal", c_.reduce("reduce_sum", powers, {2}, true));
  }

  V row = ir::kAbsent, column = ir::kAbsent;  ///< i64 [n,m,1]

private:
  V mirrored(V place, int64_t step) {
    const V moved = c_.plus(place, static_cast<double>(step)),
            other = c_.minus(place, static_cast<double>(step));
    if (step == 0) return place;
    const V is_outside =
        step < 0 ? c_.binary("less", moved, c_.number(moved, 0)) : c_.binary("greater_equal", moved, size_);
    return c_.where(is_outside, other, moved);
  }

  Compose c_;
  const ir::SymShape shape_;
  V flat_ = ir::kAbsent, size_ = ir::kAbsent;
};

/// Where a map has its largest value around its largest element, and that value: by its Taylor expansion to
/// the second order.
struct Summit {
  V over, down, value;
};
Summit summit_of(Compose& c, Peaks& peaks) {
  const V middle = peaks.at(0, 0), left = peaks.at(0, -1), right = peaks.at(0, 1), above = peaks.at(-1, 0),
          below = peaks.at(1, 0);
  const auto bend = [&](V one, V other) { return c.sub(c.add(one, other), c.times(middle, 2)); };
  const V bx = c.times(c.sub(left, right), 0.5), by = c.times(c.sub(above, below), 0.5);
  const V xx = bend(left, right), yy = bend(above, below);
  const V twist = c.sub(c.add(peaks.at(1, 1), peaks.at(-1, -1)), c.add(peaks.at(1, -1), peaks.at(-1, 1)));
  const V xy = c.times(twist, 0.25);
  const V det = c.sub(c.mul(xx, yy), c.mul(xy, xy));
  const V is_flat = c.binary("less", c.unary("abs", det), c.number(det, 1e-4));
  const V divisor = c.where(is_flat, c.number(det, 1), det);
  const V x = c.div(c.sub(c.mul(yy, bx), c.mul(xy, by)), divisor),
          y = c.div(c.sub(c.mul(xx, by), c.mul(xy, bx)), divisor);
  constexpr double kMost = 1.5;
  const V larger = c.binary("max", c.unary("abs", x), c.unary("abs", y));
  const V shrunk = c.div(c.number(larger, kMost), c.binary("max", larger, c.number(larger, kMost)));
  const V factor = c.where(is_flat, c.number(larger, 0), shrunk);
  const V over = c.mul(x, factor), down = c.mul(y, factor);
  const V slope = c.add(c.mul(bx, over), c.mul(by, down));
  const V curve = c.add(c.add(c.mul(xx, c.mul(over, over)), c.mul(yy, c.mul(down, down))),
                        c.times(c.mul(xy, c.mul(over, down)), 2));
  return {over, down, c.add(c.sub(middle, slope), c.times(curve, 0.5))};
}

}  // namespace

// Operands: maps [n,points,s,s], boxes [n,4 or more]. Results [n,4,points]: x, y, value, probability.
void convert_heatmap_max_keypoint(NodeContext& node) {
  Compose c(node);
  const V maps = node.operand(0), boxes = node.operand(1);
  const ir::SymShape shape = node.shape(maps);
  if (shape.size() != 4 || node.rank(boxes) != 2 || shape[2] != shape[3] || shape[2] < 2)
    node.invalid("maps of shape " + to_string(shape) + " with boxes of " + to_string(node.shape(boxes)));
  Peaks peaks(node, maps);
  const Summit summit = summit_of(c, peaks);
  const auto placed = [&](V place, V moved, int64_t index) {
    const V from = c.unsqueeze(c.slice(boxes, 1, index, 1), 2),
            to = c.unsqueeze(c.slice(boxes, 1, index + 2, 1), 2);
    const V length = c.sub(to, from);
    const V part = c.div(c.binary("max", length, c.number(length, 1)), c.extent(length, shape[2]));
    return c.add(from, c.mul(c.plus(c.add(c.cast(place, node.dtype(moved)), moved), 0.5), part));
  };
  const V none = c.filled(node.dtype(maps), {shape[0], shape[1], 1}, 0);
  const V probability = node.flag("should_output_softmax", false) ? peaks.probability() : none;
  const V all = c.concat(
      {placed(peaks.column, summit.over, 0), placed(peaks.row, summit.down, 1), summit.value, probability},
      2);
  node.set_output(c.transpose(all, {0, 2, 1}));
}

}  // namespace tensormill::frontend::caffe2
