// Boxes that are chosen in each class, the best ones of all told.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// Boxes that a result has room for, and that are looked at among all classes, at most.
constexpr int64_t kMostShown = 1 << 16, kMostRanked = int64_t{1} << 24;
constexpr int64_t kMostPictures = 256;

struct ClassBoxes {
  int64_t classes = 0, boxes = 0;  ///< of a box: how many classes, and a box each or one for all
  int64_t each = 0, shown = 0;     ///< of a class, and of all at most
  V limits = ir::kAbsent;
  bool is_clipped = true;
};

struct Detected {
  V corners, scores, classes, count;  ///< [shown,4], [shown], [shown], i32 [1]
};

/// x [rows,...] with zeros from row `count` on, and behind its last one up to `shown` rows.
V first_of(NodeContext& node, V x, V count, int64_t shown) {
  Compose c(node);
  const ir::SymShape shape = node.shape(x);
  ir::SymShape along(shape.size(), 1), more = shape;
  along[0] = shape[0];
  const V is_there = c.binary("less", c.iota(shape[0], along), c.cast(count, DType::kInt64));
  const V counted = c.where(is_there, x, c.number(x, 0));
  more[0] = ir::SymInt(shown) - shape[0];
  return same(more[0], 0) ? counted : c.concat({counted, c.filled(node.dtype(x), more, 0)}, 0);
}

/// Of one picture: boxes [n,classes or 1,4], scores [n,classes].
Detected detected(NodeContext& node, V boxes, V scores, const ClassBoxes& spec) {
  Compose c(node);
  const ir::SymInt n = node.shape(scores)[0];
  const V by_class = c.transpose(scores, {1, 0});
  std::vector<V> places, kept, counts;
  for (int64_t i = 0; i < spec.boxes; ++i) {
    const V own = c.reshape(c.slice(boxes, 1, i, 1), {n, 4});
    const V of = spec.boxes == 1 ? by_class : c.slice(by_class, 0, i, 1);
    const std::vector<V> made =
        node.add_many("suppress_boxes", {own, of, spec.limits}, {{"most", spec.each}});
    places.push_back(c.cast(made[0], DType::kInt64));
    kept.push_back(made[1]);
    counts.push_back(made[2]);
  }
  const int64_t all = spec.each * spec.classes, most = std::min(all, spec.shown);
  const V number = c.reshape(c.concat(counts, 0), {spec.classes, 1}), ranks = c.concat(kept, 0);
  const V is_there = c.binary("less", c.iota(spec.each, {1, spec.each}), c.cast(number, DType::kInt64));
  const V none = c.number(ranks, -std::numeric_limits<double>::infinity());
  const V ranked = c.reshape(c.where(is_there, ranks, none), {all});
  const V order = c.cast(
      node.add("sort_positions", {ranked}, {{"axis", int64_t{0}}, {"k", most}, {"largest", int64_t{1}}}),
      DType::kInt64);
  const V total = c.reduce("reduce_sum", c.reshape(number, {spec.classes}), {0}, true);
  const V count = c.binary("min", total, c.number(total, static_cast<double>(most)));
  const V label = c.binary("div", order, c.number(order, static_cast<double>(spec.each)));
  V box = c.times(c.gather(c.reshape(c.concat(places, 0), {all}), order, 0), static_cast<double>(spec.boxes));
  if (spec.boxes > 1) box = c.add(box, label);
  V corners = c.gather(c.reshape(boxes, {n * spec.boxes, 4}), box, 0);
  if (spec.is_clipped) corners = c.clip(corners, 0, 1);
  return {first_of(node, corners, count, spec.shown),
          first_of(node, c.gather(ranked, order, 0), count, spec.shown),
          first_of(node, c.cast(label, DType::kFloat32), count, spec.shown), count};
}

int64_t number_within(NodeContext& node, size_t operand, const char* what) {
  const int64_t number = node.known_int(operand, what);
  if (number < 1 || number > kMostShown) node.invalid(std::string(what) + " is " + std::to_string(number));
  return number;
}

}  // namespace

// Operands: boxes [pictures,n,classes or 1,4], scores [pictures,n,classes], how many of a class, how many of
// all, overlap, score. Results: boxes, scores, classes, how many of each picture.
void convert_combined_non_max_suppression(NodeContext& node) {
  Compose c(node);
  const V boxes = node.input(0), scores = node.input(1);
  const ir::SymShape places = node.shape(boxes), shape = node.shape(scores);
  const bool fits = places.size() == 4 && shape.size() == 3 && shape[0].is_constant() &&
                    shape[2].is_constant() && places[2].is_constant() && same(places[3], 4);
  if (!fits)
    node.unsupported("operands", "boxes of shape " + to_string(places) + " with scores of " +
                                     to_string(shape) + " are not implemented");
  ClassBoxes spec{shape[2].hint(), places[2].hint(), number_within(node, 2, "max_output_size_per_class"),
                  number_within(node, 3, "max_total_size")};
  if (spec.boxes != 1 && spec.boxes != spec.classes)
    node.invalid("boxes of shape " + to_string(places) + " with scores of " + to_string(shape));
  if (spec.classes < 1 || spec.classes * spec.each > kMostRanked || shape[0].hint() < 1 ||
      shape[0].hint() > kMostPictures || spec.boxes > kMostPictures)
    node.unsupported("operands", "so many classes or pictures are not implemented");
  if (node.flag("pad_per_class", false)) spec.shown = std::min(spec.shown, spec.each * spec.classes);
  spec.is_clipped = node.flag("clip_boxes", true);
  // A box goes where its overlap is above the limit.
  const double overlap = std::nextafter(node.known_real(4, "iou_threshold"), 2.0);
  spec.limits =
      c.doubles(DType::kFloat64,
                {static_cast<double>(spec.each), overlap, node.known_real(5, "score_threshold"), 0}, {4});
  std::vector<std::vector<V>> all(4);
  for (int64_t i = 0; i < shape[0].hint(); ++i) {
    const V own = c.squeeze(c.slice(boxes, 0, i, 1), 0), of = c.squeeze(c.slice(scores, 0, i, 1), 0);
    const Detected made = detected(node, own, of, spec);
    const std::vector<V> results{made.corners, made.scores, made.classes, c.reshape(made.count, {})};
    for (size_t k = 0; k < results.size(); ++k) all[k].push_back(c.unsqueeze(results[k], 0));
  }
  for (size_t k = 0; k < all.size(); ++k) node.set_output(k, c.concat(all[k], 0));
}

}  // namespace tensormill::frontend::tensorflow
