// Of the boxes that a network finds those that stay.
#include <algorithm>
#include <limits>

#include "compiler/build/moves/places.h"
#include "compiler/build/pictures/boxes.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

/// x [b,n,...] at places [b,k].
V picked_rows(NodeContext& node, V x, V places) { return build::batched_gather(node, x, places, 1, 1); }

/// rows [b,n,w] where `holds` [b,n] does, else -1.
V or_minus_one(NodeContext& node, V holds, V rows) {
  Compose c(node);
  return c.where(c.unsqueeze(holds, 2), rows, c.number(rows, -1));
}

/// Which places of [b,n] come before a count [b,1].
V is_before(NodeContext& node, const ir::SymInt& n, V count) {
  Compose c(node);
  return c.binary("less", c.iota(n, {1, n}), count);
}

class BoxNms {
public:
  explicit BoxNms(NodeContext& node)
      : node_(node),
        c_(node),
        topk_(node.integer("topk", -1)),
        coord_(node.integer("coord_start", 2)),
        score_(node.integer("score_index", 1)),
        id_(node.integer("id_index", -1)),
        background_(node.integer("background_id", -1)),
        overlap_(node.real("overlap_thresh", 0.5)),
        least_(node.real("valid_thresh", 0)),
        is_forced_(node.flag("force_suppress", false)),
        reads_centers_(is_center("in_format")),
        writes_centers_(is_center("out_format")) {
    const ir::SymShape shape = node.shape(node.input(0));
    if (shape.size() < 2 || !shape.back().is_constant()) node.invalid("boxes of shape " + to_string(shape));
    width_ = shape.back().hint();
    const auto is_inside = [&](int64_t index) {
      return index >= 0 && index < width_ && (index < coord_ || index > coord_ + 3);
    };
    if (coord_ < 0 || coord_ > width_ - 4 || !is_inside(score_) || (id_ >= 0 && !is_inside(id_)) ||
        id_ == score_)
      node.invalid("boxes of " + std::to_string(width_) + " numbers with coord_start " +
                   std::to_string(coord_) + ", score_index " + std::to_string(score_) + ", id_index " +
                   std::to_string(id_));
  }

  void convert() {
    const V given = node_.input(0);
    const ir::SymShape shape = node_.shape(given);
    if (topk_ == 0) return node_.set_output(given);
    const ir::SymInt& n = shape[shape.size() - 2];
    const ir::SymInt k = topk_ < 0 ? n : min(n, topk_);
    const ir::SymInt batch = num_elements(ir::SymShape(shape.begin(), shape.end() - 2));
    const V all = c_.reshape(given, {batch, n, width_}), ranks = ranked(all);
    const V order = build::ordered_places(node_, ranks, 1, k, false);
    const V rows = picked_rows(node_, all, order);
    const V stays = kept(rows, c_.gather_elements(ranks, order, 1));
    const V first = picked_rows(node_, rows, build::true_first(node_, stays, k));
    V y = or_minus_one(node_, is_before(node_, k, build::true_count(node_, stays)), written(first));
    if (!same(k, n)) y = c_.concat({y, c_.filled(node_.dtype(y), {batch, n - k, width_}, -1)}, 1);
    node_.set_output(c_.reshape(y, shape));
  }

private:
  bool is_center(const char* name) {
    const std::string format = node_.text(name, "corner");
    if (format != "corner" && format != "center")
      node_.invalid(std::string(name) + " is \"" + format.substr(0, 40) + "\"");
    return format == "center";
  }

  V column(V rows, int64_t index) { return c_.squeeze(c_.slice(rows, 2, index, 1), 2); }
  V ids(V rows) { return c_.cast(column(rows, id_), DType::kInt64); }

  /// Scores [b,n], minus infinity for boxes that are none.
  V ranked(V all) {
    const V scores = c_.cast(column(all, score_), DType::kFloat32);
    V is_valid = c_.binary("greater", scores, c_.number(scores, least_));
    if (id_ >= 0) {
      const V own = ids(all), background = c_.number(own, static_cast<double>(background_));
      is_valid = c_.binary("and", is_valid, c_.unary("not", c_.binary("equal", own, background)));
    }
    return c_.where(is_valid, scores, c_.number(scores, kNone));
  }

  V kept(V rows, V scores) {
    const V boxes = c_.slice(rows, 2, coord_, 4);
    build::BoxRows spec;
    spec.boxes = reads_centers_ ? build::corners_of(node_, boxes) : boxes;
    spec.scores = scores;
    if (id_ >= 0 && !is_forced_) spec.groups = ids(rows);
    spec.overlap = build::above_overlap(overlap_);
    return build::kept_boxes(node_, spec);
  }

  /// In the other form where that is requested; boxes whose first number is below 0 stay as they are.
  V written(V rows) {
    if (reads_centers_ == writes_centers_) return rows;
    const V own = c_.slice(rows, 2, coord_, 4), first = c_.slice(rows, 2, coord_, 1);
    const V other = writes_centers_ ? build::centers_of(node_, own) : build::corners_of(node_, own);
    const int64_t behind = coord_ + 4;
    std::vector<V> parts{c_.where(c_.binary("less", first, c_.number(first, 0)), own, other)};
    if (coord_ > 0) parts.insert(parts.begin(), c_.slice(rows, 2, 0, coord_));
    if (behind < width_) parts.push_back(c_.slice(rows, 2, behind, width_ - behind));
    return c_.concat(parts, 2);
  }

  NodeContext& node_;
  Compose c_;
  const int64_t topk_, coord_, score_, id_, background_;
  const double overlap_, least_;
  const bool is_forced_, reads_centers_, writes_centers_;
  int64_t width_ = 0;
};

struct Detections {
  V rows;      ///< [b,n,6]: class, score, corners
  V labels;    ///< i64 [b,n]
  V scores;    ///< [b,n]
  V is_valid;  ///< [b,n]
};

/// Of probabilities [b,classes,n], the first of which is no class, and what is said of anchors [1,n,4].
Detections detections_of(NodeContext& node) {
  Compose c(node);
  const V all = node.input(0), deltas = node.input(1), anchors = node.input(2);
  const ir::SymShape shape = node.shape(all);
  if (shape.size() != 3 || node.rank(deltas) != 2 || node.rank(anchors) != 3 ||
      !demand(ir::Relation::kLessEqual, 2, shape[1]))
    node.invalid("probabilities of shape " + to_string(shape) + ", boxes of " +
                 to_string(node.shape(deltas)) + ", anchors of " + to_string(node.shape(anchors)));
  if (node.integer("background_id", 0) != 0)
    node.unsupported("background_id", "another background than the first class is not implemented");
  const ir::CheckedList<double> variances = node.reals("variances", std::vector<double>{0.1, 0.1, 0.2, 0.2});
  if (variances.size() != 4) node.invalid("variances has " + std::to_string(variances.size()) + " numbers");
  build::BoxCoding coding;
  std::copy(variances.begin(), variances.end(), coding.scales.begin());
  V boxes = build::moved_boxes(node, anchors, c.reshape(deltas, {shape[0], shape[2], 4}), coding);
  if (node.flag("clip", true)) boxes = c.clip(boxes, 0, 1);
  const V classes = c.slice(all, 1, 1, shape[1] - 1);
  Detections found{};
  found.scores = c.reduce("reduce_max", classes, {1}, false);
  found.labels = c.cast(c.arg_max(classes, 1, false), DType::kInt64);
  // A score of -1 is no class either.
  found.is_valid = c.binary(
      "and", c.binary("greater_equal", found.scores, c.number(found.scores, node.real("threshold", 0.01))),
      c.binary("greater", found.scores, c.number(found.scores, -1)));
  const V label = c.cast(found.labels, node.dtype(boxes));
  found.rows = c.concat({c.unsqueeze(label, 2), c.unsqueeze(found.scores, 2), boxes}, 2);
  return found;
}

}  // namespace

// The best boxes in front, their order that of the scores; -1 behind them.
void convert_box_nms(NodeContext& node) { BoxNms(node).convert(); }

// Rows of class, score and corners [b,n,6], those that are none -1 at the end. A box that goes for a better
// one has a class of -1, and stays where it is; so do those behind the best nms_topk, in the anchors' order.
void convert_multibox_detection(NodeContext& node) {
  Compose c(node);
  const Detections found = detections_of(node);
  const double overlap = node.real("nms_threshold", 0.5);
  const bool is_forced = node.flag("force_suppress", false);
  const int64_t topk = node.integer("nms_topk", -1);
  const ir::SymInt n = node.shape(found.scores)[1];
  const V is_there = is_before(node, n, build::true_count(node, found.is_valid));
  const auto in_order = [&] {
    return picked_rows(node, found.rows, build::true_first(node, found.is_valid, n));
  };
  if (!(overlap > 0) || overlap > 1) return node.set_output(or_minus_one(node, is_there, in_order()));
  const V none = c.number(found.scores, kNone);
  const V ranks = c.where(found.is_valid, found.scores, none);
  const V order = build::ordered_places(node, ranks, 1, n, false);
  V rows = picked_rows(node, found.rows, order), scores = c.gather_elements(ranks, order, 1);
  build::BoxRows spec;
  spec.boxes = c.slice(rows, 2, 2, 4);
  spec.overlap = static_cast<double>(static_cast<float>(overlap));
  if (!is_forced) spec.groups = c.gather_elements(found.labels, order, 1);
  if (topk > 0) {
    const V is_best = is_before(node, n, c.ints({topk}, {1, 1}));
    scores = c.where(is_best, scores, none);
    rows = c.where(c.unsqueeze(is_best, 2), rows, in_order());
  }
  spec.scores = scores;
  const V classes = or_minus_one(node, build::kept_boxes(node, spec), c.slice(rows, 2, 0, 1));
  node.set_output(or_minus_one(node, is_there, c.concat({classes, c.slice(rows, 2, 1, 5)}, 2)));
}

}  // namespace tensormill::frontend::mxnet
