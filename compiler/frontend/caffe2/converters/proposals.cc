// The boxes that a network takes a closer look at, and the levels of a pyramid of maps that they go to (Lin
// et al. 2017, "Feature Pyramid Networks", section 4.2).
#include <cmath>
#include <limits>

#include "compiler/build/extents/data_dependent.h"
#include "compiler/build/moves/places.h"
#include "compiler/frontend/caffe2/converters/boxes.h"

namespace tensormill::frontend::caffe2 {

namespace {

/// Whether boxes [b,n,4] have sides of `least` or more, and centers inside of pictures: bool [b,n].
V is_large_inside(Compose& c, V boxes, V info, double least, double added) {
  const V smallest = c.unsqueeze(c.times(c.slice(info, 1, 2, 1), least), 2);
  // Of pictures the height stands in front of the width.
  const V sides = c.unsqueeze(c.concat({c.slice(info, 1, 1, 1), c.slice(info, 1, 0, 1)}, 1), 1);
  const V low = c.slice(boxes, 2, 0, 2);
  const V size = c.plus(c.sub(c.slice(boxes, 2, 2, 2), low), added);
  const V center = c.add(low, c.times(size, 0.5));
  const V both = c.binary("and", c.binary("greater_equal", size, smallest), c.binary("less", center, sides));
  return c.squeeze(c.binary("and", c.slice(both, 2, 0, 1), c.slice(both, 2, 1, 1)), 2);
}

/// `fits` [b,n] without boxes of no area, but the first one: Caffe2 takes the part 0 / 0 that two of these
/// share for a large one.
V without_flat_ones(NodeContext& node, V boxes, V fits) {
  Compose c(node);
  const V size = c.sub(c.slice(boxes, 2, 2, 2), c.slice(boxes, 2, 0, 2));
  const V area = c.squeeze(c.mul(c.slice(size, 2, 0, 1), c.slice(size, 2, 1, 1)), 2);
  const V is_flat = c.binary("and", fits, c.binary("less_equal", area, c.number(area, 0)));
  const V before = node.add("cumsum", {c.cast(is_flat, DType::kInt64)},
                            {{"axis", int64_t{1}}, {"exclusive", int64_t{1}}, {"reverse", int64_t{0}}});
  const V is_later = c.binary("and", is_flat, c.binary("greater", before, c.number(before, 0)));
  return c.binary("and", fits, c.unary("not", is_later));
}

}  // namespace

// Operands: scores [b,anchors,H,W], what is said of the boxes [b,4*anchors,H,W], of the pictures their
// height, width and scale [b,3], anchors [anchors,4]. Results: picture and box [m,5], scores [m].
void convert_generate_proposals(NodeContext& node) {
  Compose c(node);
  const V given = node.operand(0), info = node.operand(2), anchors = node.operand(3);
  const ir::SymShape shape = node.shape(given);
  if (shape.size() != 4 || node.rank(info) != 2 || node.rank(anchors) != 2 || node.shape(info)[1] != 3)
    node.invalid("scores of shape " + to_string(shape) + ", pictures of " + to_string(node.shape(info)) +
                 ", anchors of " + to_string(node.shape(anchors)));
  if (node.shape(anchors)[1] != 4) node.unsupported("operand 3", "boxes with an angle are not implemented");
  const build::BoxCoding coding = coding_of(node);
  if (!node.flag("correct_transform_coords", true))
    node.unsupported("correct_transform_coords", "boxes that reach a pixel further are not implemented");
  const double scale = node.real("spatial_scale", 1.0 / 16);
  if (!(scale > 0)) node.invalid("argument spatial_scale is " + std::to_string(scale));
  const V all = build::boxes_over(node, anchors, shape[2], shape[3],
                                  static_cast<double>(static_cast<float>(1 / scale)));
  const V moved =
      build::moved_boxes(node, c.unsqueeze(all, 0), build::numbers_over(node, node.operand(1), 4), coding);
  const auto limit = [&](int64_t index) {
    return c.unsqueeze(c.minus(whole(c, c.slice(info, 1, index, 1)), coding.added), 2);
  };
  const V inside = build::clipped_boxes(node, moved, limit(1), limit(0));
  const V scores = c.squeeze(build::numbers_over(node, given, 1), 2);
  const int64_t before = node.integer("pre_nms_topN", 6000), after = node.integer("post_nms_topN", 300);
  const ir::SymInt n = node.shape(scores)[1];
  const V order = build::ordered_places(node, scores, 1, before > 0 ? min(n, before) : n, false);
  build::BoxRows spec;
  spec.boxes = build::batched_gather(node, inside, order, 1, 1);
  const V ranks = c.gather_elements(scores, order, 1);
  V fits = is_large_inside(c, spec.boxes, info, node.real("min_size", 16), coding.added);
  if (coding.added == 0) fits = without_flat_ones(node, spec.boxes, fits);
  spec.scores = c.where(fits, ranks, c.number(ranks, -std::numeric_limits<double>::infinity()));
  spec.overlap = build::above_overlap(node.real("nms_thresh", static_cast<double>(0.7F)));
  spec.added = coding.added;
  if (after > 0) spec.most = after;
  const V places = build::places_of_nonzero(node, build::kept_boxes(node, spec));
  const V picture = c.cast(c.slice(places, 1, 0, 1), node.dtype(spec.boxes));
  node.set_output(0, c.concat({picture, build::gather_nd(node, spec.boxes, places)}, 1));
  if (node.has_output(1)) node.set_output(1, build::gather_nd(node, ranks, places));
}

namespace {

struct Levels {
  int64_t low = 0, high = 0;
  size_t count() const { return static_cast<size_t>(high - low + 1); }
};

Levels levels_of(NodeContext& node, const char* low, int64_t low_otherwise, const char* high,
                 int64_t high_otherwise) {
  constexpr int64_t kMostLevels = 64;
  const Levels levels{node.integer(low, low_otherwise), node.integer(high, high_otherwise)};
  if (levels.low < -kMostLevels || levels.high > kMostLevels || levels.low > levels.high)
    node.invalid("levels from " + std::to_string(levels.low) + " to " + std::to_string(levels.high));
  return levels;
}

/// Boxes [m,5] of all levels, the best ones first. Operands: boxes of each level, then their scores.
V collected(NodeContext& node) {
  Compose c(node);
  const size_t count = levels_of(node, "rpn_min_level", 2, "rpn_max_level", 6).count();
  if (node.num_operands() != 2 * count)
    node.invalid("it has " + std::to_string(node.num_operands()) + " operands for " + std::to_string(count) +
                 " levels");
  std::vector<V> boxes, scores;
  for (size_t i = 0; i < count; ++i) {
    const V own = node.operand(i), of = node.operand(count + i);
    if (node.rank(own) != 2 || node.shape(own)[1] != 5)
      node.invalid("boxes of shape " + to_string(node.shape(own)));
    boxes.push_back(own);
    scores.push_back(c.reshape(of, {num_elements(node.shape(of))}));
  }
  const V all = c.concat(boxes, 0), ranks = c.concat(scores, 0);
  const ir::SymInt m = node.shape(ranks)[0];
  const int64_t most = node.integer("rpn_post_nms_topN", 2000);
  return c.gather(all, build::ordered_places(node, ranks, 0, most > 0 ? min(m, most) : m, false), 0);
}

/// Sets the outputs from `first` on: boxes [m,5] of each level, and where each box is among all of these.
void distribute(NodeContext& node, V boxes, size_t first) {
  Compose c(node);
  const Levels levels = levels_of(node, "roi_min_level", 2, "roi_max_level", 5);
  if (node.num_outputs() != first + levels.count() + 1)
    node.invalid("it has " + std::to_string(node.num_outputs()) + " outputs for " +
                 std::to_string(levels.count()) + " levels");
  if (node.rank(boxes) != 2 || node.shape(boxes)[1] != 5)
    node.invalid("boxes of shape " + to_string(node.shape(boxes)));
  const double added = node.flag("legacy_plus_one", true) ? 1 : 0;
  const V size = c.plus(c.sub(c.slice(boxes, 1, 3, 2), c.slice(boxes, 1, 1, 2)), added);
  const V area = c.mul(c.slice(size, 1, 0, 1), c.slice(size, 1, 1, 1));
  const V side =
      c.times(c.unary("sqrt", area), 1.0 / static_cast<double>(node.integer("roi_canonical_scale", 224)));
  const V octaves = c.times(c.unary("log", c.plus(side, 1e-6)), 1 / std::log(2.0));
  const V level =
      c.unary("floor", c.plus(octaves, static_cast<double>(node.integer("roi_canonical_level", 4))));
  const V own = c.reshape(
      c.cast(c.clip(level, static_cast<double>(levels.low), static_cast<double>(levels.high)), DType::kInt64),
      {node.shape(boxes)[0]});
  for (size_t i = 0; i < levels.count(); ++i) {
    const V is_here =
        c.binary("equal", own, c.number(own, static_cast<double>(levels.low + static_cast<int64_t>(i))));
    node.set_output(first + i, c.gather(boxes, c.squeeze(build::places_of_nonzero(node, is_here), 1), 0));
  }
  const V order = order_of(node, order_of(node, own, true), true);
  node.set_output(first + levels.count(), c.cast(order, DType::kInt32));
}

}  // namespace

void convert_collect_rpn_proposals(NodeContext& node) { node.set_output(collected(node)); }

void convert_distribute_fpn_proposals(NodeContext& node) { distribute(node, node.operand(0), 0); }

void convert_collect_and_distribute(NodeContext& node) {
  const V boxes = collected(node);
  node.set_output(0, boxes);
  distribute(node, boxes, 1);
}

}  // namespace tensormill::frontend::caffe2
