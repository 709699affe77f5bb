// Boxes that stay when those that overlap better ones are dropped.
#include <limits>

#include "compiler/build/extents/data_dependent.h"
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

struct BoxLimits {
  int64_t most;
  double overlap, score;
  bool by_class;
};

/// Of one picture: boxes [n,4] by their middles, widths and heights, scores [n,classes].
class KeptOfPicture {
public:
  KeptOfPicture(NodeContext& node, V boxes, V scores, const BoxLimits& limits)
      : node_(node), c_(node), boxes_(boxes), scores_(scores), limits_(limits) {
    best_ = c_.reduce("reduce_max", c_.cast(scores, DType::kFloat32), {1}, false);
    const V corners = corners_of(c_.cast(boxes, DType::kFloat32));
    const ir::SymInt classes = node.shape(scores)[1];
    if (limits.by_class && !same(classes, 1)) {
      keep_by_class(corners, classes);
    } else {
      const build::KeptBoxes kept = suppressed(corners, best_);
      places_ = c_.cast(kept.places, DType::kInt64);
      count_ = c_.cast(kept.count, DType::kInt64);
    }
    keep_one();
  }

  /// [1,most,4], [1,most,classes], i64 [1,most], i64 [1]: 0, and -1 of the places, behind as many as there
  /// are.
  V boxes() { return rows(boxes_); }
  V scores() { return rows(scores_); }
  V places() { return c_.unsqueeze(c_.where(is_there_, places_, c_.number(places_, -1)), 0); }
  V count() { return c_.reshape(count_, {1}); }

private:
  /// y1, x1, y2, x2
  V corners_of(V boxes) {
    const auto column = [&](int64_t index) { return c_.slice(boxes, 1, index, 1); };
    const V half_width = c_.times(column(2), 0.5), half_height = c_.times(column(3), 0.5);
    return c_.concat({c_.sub(column(1), half_height), c_.sub(column(0), half_width),
                      c_.add(column(1), half_height), c_.add(column(0), half_width)},
                     1);
  }

  build::KeptBoxes suppressed(V corners, V scores) {
    return build::suppressed_boxes(node_, corners, scores, limits_.most,
                                   c_.doubles(DType::kFloat64, {limits_.overlap}, {}),
                                   c_.doubles(DType::kFloat64, {limits_.score}, {}), ir::kAbsent);
  }

  /// Those of each class of its own, the best of them all first.
  void keep_by_class(V corners, const ir::SymInt& classes) {
    constexpr int64_t kMostClasses = 1024;
    if (!classes.is_constant() || classes.hint() > kMostClasses)
      node_.unsupported("per_class_suppression",
                        to_string(classes) + " classes, more than " + std::to_string(kMostClasses));
    const V own = c_.arg_max(scores_, 1, false);
    const V nothing = c_.number(best_, -std::numeric_limits<double>::infinity());
    std::vector<V> places, scores, counts;
    for (int64_t index = 0; index < classes.hint(); ++index) {
      const V is_own = c_.binary("equal", own, c_.number(own, static_cast<double>(index)));
      const build::KeptBoxes kept = suppressed(corners, c_.where(is_own, best_, nothing));
      const V is_kept = c_.binary("less", c_.iota(limits_.most), c_.cast(kept.count, DType::kInt64));
      places.push_back(c_.cast(kept.places, DType::kInt64));
      scores.push_back(
          c_.where(is_kept, kept.scores, c_.number(kept.scores, -std::numeric_limits<double>::infinity())));
      counts.push_back(c_.reshape(c_.cast(kept.count, DType::kInt64), {1}));
    }
    const V order =
        node_.add("sort_positions", {c_.concat(scores, 0)},
                  {{"axis", int64_t{0}}, {"k", ir::SymInt(limits_.most)}, {"largest", int64_t{1}}});
    places_ = c_.gather(c_.concat(places, 0), c_.cast(order, DType::kInt64), 0);
    const V all = c_.reduce("reduce_sum", c_.concat(counts, 0), {0}, false);
    count_ = c_.binary("min", all, c_.number(all, static_cast<double>(limits_.most)));
  }

  /// Where no box is good enough the best one stays.
  void keep_one() {
    const V position = c_.iota(limits_.most);
    const V is_first = c_.binary("equal", position, c_.number(position, 0));
    const V is_empty = c_.binary("equal", count_, c_.number(count_, 0));
    places_ = c_.where(c_.binary("and", is_first, is_empty), c_.arg_max(best_, 0, false), places_);
    count_ = c_.binary("max", count_, c_.number(count_, 1));
    is_there_ = c_.binary("less", position, count_);
  }

  V rows(V x) {
    const V taken = c_.gather(x, places_, 0);
    return c_.unsqueeze(c_.where(c_.unsqueeze(is_there_, 1), taken, c_.number(taken, 0)), 0);
  }

  NodeContext& node_;
  Compose c_;
  V boxes_, scores_;
  BoxLimits limits_;
  V best_ = ir::kAbsent, places_ = ir::kAbsent, count_ = ir::kAbsent, is_there_ = ir::kAbsent;
};

}  // namespace

// Since iOS 17 the boxes stand along the last axis, no score is too low, and nothing says how many there are.
void convert_non_maximum_suppression(NodeContext& node) {
  Compose c(node);
  const bool is_last = node.opset() >= 7;
  const auto given = [&](const char* name) {
    const V x = node.tensor(name);
    if (node.rank(x) != 3)
      node.invalid("operand " + std::string(name) + " has rank " + std::to_string(node.rank(x)));
    return is_last ? c.transpose(x, {0, 2, 1}) : x;
  };
  const V boxes = given("boxes"), scores = given("scores");
  const ir::SymShape shape = node.shape(boxes);
  if (!shape[0].is_constant()) node.unsupported("boxes", "a free number of pictures is not implemented");
  const double lowest = std::numeric_limits<double>::lowest();
  const BoxLimits limits{node.integer("max_boxes"), node.real("iou_threshold"),
                         is_last ? lowest : node.real("score_threshold"),
                         node.flag("per_class_suppression", false)};
  if (limits.most < 1 || shape[0].hint() < 1 || !ir::demand(ir::Relation::kEqual, shape[2], 4))
    node.invalid(std::to_string(limits.most) + " boxes of shape " + to_string(shape));
  std::vector<V> kept_boxes, kept_scores, places, counts;
  for (int64_t i = 0; i < shape[0].hint(); ++i) {
    const auto one = [&](V x) { return c.squeeze(c.slice(x, 0, i, 1), 0); };
    KeptOfPicture kept(node, one(boxes), one(scores), limits);
    kept_boxes.push_back(kept.boxes());
    kept_scores.push_back(kept.scores());
    places.push_back(kept.places());
    counts.push_back(kept.count());
  }
  const auto joined = [&](const std::vector<V>& rows) {
    const V all = c.concat(rows, 0);
    return is_last ? c.transpose(all, {0, 2, 1}) : all;
  };
  node.set_output(0, joined(kept_boxes));
  node.set_output(1, joined(kept_scores));
  node.set_cast(2, c.concat(places, 0));
  if (!is_last) node.set_cast(3, c.concat(counts, 0));
}

}  // namespace tensormill::frontend::coreml
