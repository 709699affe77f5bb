// Operators that choose boxes: suppression of those that overlap better ones, and what detection networks
// have behind their last layer.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/build/extents/data_dependent.h"
#include "compiler/frontend/tflite/node_context.h"
#include "compiler/frontend/wire/flexbuffer.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::tflite {

namespace {

/// Boxes that a result has room for, at most.
constexpr int64_t kMostBoxes = 1 << 16;

struct Suppressed {
  V places, scores, counts;  ///< i32 [classes,most], f32 [classes,most], i32 [classes]
};
/// boxes [n,4], scores [classes,n], limits as the step has them.
Suppressed suppressed(NodeContext& node, V boxes, V scores, V limits, int64_t most) {
  const std::vector<V> made = node.add_many("suppress_boxes", {boxes, scores, limits}, {{"most", most}});
  return {made[0], made[1], made[2]};
}

int64_t checked_most(NodeContext& node, int64_t most, const char* what) {
  if (most < 0 || most > kMostBoxes)
    node.invalid(std::string(what) + " is " + std::to_string(most) + ", expected 0 to " +
                 std::to_string(kMostBoxes));
  return most;
}

}  // namespace

// Operands: boxes [n,4], scores [n], how many at most, overlap, score, in version 5 sigma.
void convert_non_max_suppression(NodeContext& node) {
  const bool has_sigma = node.op() == "NON_MAX_SUPPRESSION_V5";
  const build::KeptBoxes kept =
      build::suppressed_boxes(node, node.real(0), node.real(1), node.known_int(2, "max_output_size"),
                              node.real(3), node.real(4), has_sigma ? node.real(5) : ir::kAbsent);
  node.set_stored(0, kept.places);
  if (has_sigma) node.set_real(1, kept.scores);
  node.set_stored(has_sigma ? 2 : 1, kept.count);
}

namespace {

class Detection {
public:
  explicit Detection(NodeContext& node) : node_(node), c_(node) {
    options_ = wire::flexbuffer_to_json(node.node().custom_options);
    if (!options_.is_object()) node.invalid("its options are no map");
    most_ = checked_most(node, integer("max_detections"), "max_detections");
    classes_each_ = checked_most(node, integer("max_classes_per_detection"), "max_classes_per_detection");
    if (classes_each_ < 1 || most_ * classes_each_ > kMostBoxes)
      node.invalid("max_classes_per_detection is " + std::to_string(classes_each_));
    check_shapes();
  }

  void convert() {
    const V boxes = decoded();
    scores_ = c_.slice(node_.real(1), 2, shape_[2] - classes_, classes_);
    scores_ = c_.reshape(scores_, {shape_[1], classes_});
    const bool is_regular = options_.contains("use_regular_nms") && flag("use_regular_nms");
    is_regular ? set_each_class(boxes) : set_best_class(boxes);
  }

private:
  double number(const char* name, std::optional<double> otherwise = {}) const {
    const auto found = options_.find(name);
    if (found == options_.end() && otherwise) return *otherwise;
    if (found == options_.end() || !found->is_number())
      node_.invalid("option " + std::string(name) + " is no number");
    const auto value = found->get<double>();
    if (!std::isfinite(value)) node_.invalid("option " + std::string(name) + " is not finite");
    return value;
  }
  int64_t integer(const char* name, std::optional<double> otherwise = {}) const {
    const double value = number(name, otherwise);
    if (value < 0 || value > kMostBoxes || value != std::floor(value))
      node_.invalid("option " + std::string(name) + " is " + std::to_string(value));
    return static_cast<int64_t>(value);
  }
  bool flag(const char* name) const {
    const Json& value = options_.at(name);
    return value.is_boolean() ? value.get<bool>() : number(name) != 0;
  }

  void check_shapes() {
    const V boxes = node_.stored(0), scores = node_.stored(1), anchors = node_.stored(2);
    shape_ = node_.shape(scores);
    const ir::SymShape places = node_.shape(boxes), at = node_.shape(anchors);
    const bool fits = places.size() == 3 && shape_.size() == 3 && at.size() == 2 &&
                      ir::demand_equal({places[0], shape_[0]}, {1, 1}) &&
                      ir::demand_equal({places[1], places[1]}, {shape_[1], at[0]}) && same(at[1], 4) &&
                      places[2].is_constant() && places[2].hint() >= 4 && shape_[2].is_constant();
    if (!fits)
      node_.invalid("boxes of shape " + to_string(places) + ", scores " + to_string(shape_) + ", anchors " +
                    to_string(at) + "; expected [1,n,4 or more], [1,n,classes], [n,4]");
    classes_ = integer("num_classes");
    const int64_t background = shape_[2].hint() - classes_;
    if (classes_ < 1 || background < 0 || background > 1)
      node_.invalid("scores of " + to_string(shape_[2]) + " classes for num_classes " +
                    std::to_string(classes_));
  }

  /// f64 [n,1]: what column `index` of operand `operand` says.
  V column(size_t operand, int64_t index) {
    const V all = node_.real(operand);
    return c_.cast(c_.reshape(c_.slice(all, node_.rank(all) - 1, index, 1), {shape_[1], 1}), DType::kFloat64);
  }

  /// Corners f32 [n,4] of boxes that are said by centres and extents, against those of their anchors.
  V decoded() {
    const auto scaled = [&](int64_t index, const char* name) {
      const double scale = number(name);
      if (scale == 0) node_.invalid("option " + std::string(name) + " is 0");
      return c_.div(column(0, index),
                    c_.number(column(0, index), static_cast<double>(static_cast<float>(scale))));
    };
    const auto center = [&](int64_t index, const char* name) {
      return c_.cast(c_.add(c_.mul(scaled(index, name), column(2, index + 2)), column(2, index)),
                     DType::kFloat32);
    };
    const auto half = [&](int64_t index, const char* name) {
      const V grown = c_.times(c_.unary("exp", scaled(index, name)), 0.5);
      return c_.cast(c_.mul(grown, column(2, index)), DType::kFloat32);
    };
    const V y = center(0, "y_scale"), x = center(1, "x_scale"), h = half(2, "h_scale"),
            w = half(3, "w_scale");
    return c_.concat({c_.sub(y, h), c_.sub(x, w), c_.add(y, h), c_.add(x, w)}, 1);
  }

  /// The thresholds here: a score that is not below, an overlap that is not above.
  V limits(int64_t most) {
    const auto overlap = static_cast<float>(number("nms_iou_threshold"));
    const auto score = static_cast<float>(number("nms_score_threshold"));
    if (!(overlap > 0) || !(overlap <= 1))
      node_.invalid("option nms_iou_threshold is " + std::to_string(overlap));
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return c_.doubles(DType::kFloat64,
                      {static_cast<double>(most), static_cast<double>(std::nextafter(overlap, kInfinity)),
                       static_cast<double>(std::nextafter(score, -kInfinity)), 0},
                      {4});
  }

  /// x [rows,...] of whatever type as floats, zeros from row `count` (i32 []) on.
  V first_rows(V x, V count) {
    x = c_.cast(x, DType::kFloat32);
    ir::SymShape along(node_.shape(x).size(), 1);
    along[0] = node_.shape(x)[0];
    const V is_there = c_.binary("less", c_.cast(c_.iota(along[0], along), DType::kInt32), count);
    return c_.where(is_there, x, c_.number(x, 0));
  }

  /// x [rows,columns] with zeros behind, as `rows` by `columns`.
  V padded(V x, int64_t rows, int64_t columns) {
    const ir::SymShape own = node_.shape(x);
    if (same(own[0], rows) && same(own[1], columns)) return x;
    const ir::SymShape pads{0, 0, rows - own[0], columns - own[1]};
    return node_.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
  }

  V sorted(V x, int64_t axis, int64_t k) {
    return node_.add("sort_positions", {x}, {{"axis", axis}, {"k", k}, {"largest", int64_t{1}}});
  }

  void set(V boxes, V classes, V scores, V count) {
    const int64_t all = most_ * classes_each_;
    node_.set_real(0, c_.reshape(boxes, {1, all, 4}));
    node_.set_real(1, c_.reshape(classes, {1, all}));
    node_.set_real(2, c_.reshape(scores, {1, all}));
    node_.set_real(3, c_.reshape(c_.cast(count, DType::kFloat32), {1}));
  }

  // Boxes are chosen by their best class, and told with their best classes.
  void set_best_class(V boxes) {
    const int64_t k = std::min(classes_each_, classes_);
    const V order = sorted(scores_, 1, k), values = c_.gather_elements(scores_, order, 1);
    const V best = c_.reshape(c_.slice(values, 1, 0, 1), {1, shape_[1]});
    const Suppressed kept = suppressed(node_, boxes, best, limits(most_), most_);
    const V places = c_.reshape(kept.places, {most_}), count = c_.reshape(kept.counts, {});
    const auto of_kept = [&](V rows) {
      return padded(first_rows(c_.gather(rows, places, 0), count), most_, classes_each_);
    };
    const V corners = c_.unsqueeze(first_rows(c_.gather(boxes, places, 0), count), 1);
    const V each = c_.expand(corners, {most_, k, 4});
    const V whole = padded(c_.reshape(each, {most_, k * 4}), most_, classes_each_ * 4);
    set(whole, of_kept(order), of_kept(values), count);
  }

  // Boxes are chosen in each class, and the best ones of all told.
  void set_each_class(V boxes) {
    const int64_t each = checked_most(node_, integer("detections_per_class", 100), "detections_per_class");
    if (each < 1 || each * classes_ > (int64_t{1} << 24))
      node_.invalid("option detections_per_class is " + std::to_string(each));
    const Suppressed kept = suppressed(node_, boxes, c_.transpose(scores_, {1, 0}), limits(each), each);
    const V is_there = c_.binary("less", c_.cast(c_.iota(each, {1, each}), DType::kInt32),
                                 c_.reshape(kept.counts, {classes_, 1}));
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    const int64_t all = each * classes_, shown = std::min(most_, all);
    const V ranked = c_.reshape(c_.where(is_there, kept.scores, c_.number(kept.scores, kNone)), {all});
    const V order = sorted(ranked, 0, shown);
    const V total = c_.reduce("reduce_sum", kept.counts, {0}, false);
    const V count = c_.binary("min", total, c_.number(total, static_cast<double>(shown)));
    const V places = c_.gather(c_.reshape(kept.places, {all}), order, 0);
    const V label = c_.binary("div", order, c_.number(order, static_cast<double>(each)));
    const auto column = [&](V x) {
      return padded(c_.reshape(first_rows(x, count), {shown, 1}), most_ * classes_each_, 1);
    };
    set(padded(first_rows(c_.gather(boxes, places, 0), count), most_ * classes_each_, 4), column(label),
        column(c_.gather(ranked, order, 0)), count);
  }

  NodeContext& node_;
  Compose c_;
  Json options_;
  int64_t most_ = 0, classes_ = 0, classes_each_ = 0;
  ir::SymShape shape_;  ///< of the scores
  V scores_ = ir::kAbsent;
};

}  // namespace

// Operands: boxes [1,n,4 ..] (centres, extents), scores [1,n,classes, with or without a background], anchors.
void convert_detection_postprocess(NodeContext& node) { Detection(node).convert(); }

}  // namespace tensormill::frontend::tflite
