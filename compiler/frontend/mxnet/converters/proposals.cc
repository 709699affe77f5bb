// Proposal: the boxes that a network takes a closer look at (Ren et al. 2015, "Faster R-CNN", section 3.1).
#include <algorithm>
#include <cmath>

#include "compiler/build/moves/places.h"
#include "compiler/build/pictures/boxes.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

constexpr int64_t kMostAnchors = 4096;

/// Corners of anchors around a place, [anchors,4] in a row: their areas, about that of a stride, are divided
/// by the ratios, rounded, and scaled.
std::vector<double> anchors_of(const std::vector<double>& ratios, const std::vector<double>& scales,
                               double stride) {
  std::vector<double> corners;
  const double center = 0.5 * (stride - 1);
  for (const double ratio : ratios) {
    const double area = std::floor(stride * stride / ratio), width = std::floor(std::sqrt(area) + 0.5),
                 height = std::floor(width * ratio + 0.5);
    for (const double scale : scales) {
      const double over = 0.5 * (width * scale - 1), down = 0.5 * (height * scale - 1);
      corners.insert(corners.end(), {center - over, center - down, center + over, center + down});
    }
  }
  return corners;
}

class Proposals {
public:
  explicit Proposals(NodeContext& node) : node_(node), c_(node), shape_(node.shape(node.input(0))) {
    before_ = node.integer("rpn_pre_nms_top_n", 6000);
    after_ = node.integer("rpn_post_nms_top_n", 300);
    stride_ = node.integer("feature_stride", 16);
    const ir::CheckedList<double> scales = node.reals("scales", std::vector<double>{4, 8, 16, 32}),
                                  ratios = node.reals("ratios", std::vector<double>{0.5, 1, 2});
    each_ = static_cast<int64_t>(scales.size() * ratios.size());
    if (after_ < 1 || after_ > build::kMostResultBoxes || stride_ < 1 || stride_ > 65536 || each_ < 1 ||
        each_ > kMostAnchors ||
        std::any_of(ratios.begin(), ratios.end(), [](double ratio) { return !(ratio > 0); }))
      node.invalid("rpn_post_nms_top_n is " + std::to_string(after_) + ", feature_stride " +
                   std::to_string(stride_) + ", with " + std::to_string(each_) + " anchors of a place");
    if (shape_.size() != 4 || shape_[1] != 2 * each_ || node.rank(node.input(2)) != 2 ||
        node.shape(node.input(2))[1] != 3)
      node.invalid("scores of shape " + to_string(shape_) + " and pictures of " +
                   to_string(node.shape(node.input(2))) + " for " + std::to_string(each_) +
                   " anchors of a place");
    anchors_ = anchors_of(ratios, scales, static_cast<double>(stride_));
  }

  void convert() {
    const V fore = c_.slice(node_.input(0), 1, each_, each_);
    scores_ = c_.squeeze(build::numbers_over(node_, fore, 1), 2);
    set_boxes();
    mark_those_outside();
    mark_small_ones();
    choose();
  }

private:
  /// Number `index` of the pictures' height, width and scale: [b,1].
  V of_picture(int64_t index) { return c_.slice(node_.input(2), 1, index, 1); }
  V limit(int64_t index) { return c_.unsqueeze(c_.minus(of_picture(index), 1), 2); }

  void set_boxes() {
    const V base = c_.doubles(node_.dtype(node_.input(0)), anchors_, {each_, 4});
    const V anchors =
        c_.unsqueeze(build::boxes_over(node_, base, shape_[2], shape_[3], static_cast<double>(stride_)), 0);
    const V deltas = build::numbers_over(node_, node_.input(1), 4);
    build::BoxCoding coding;
    coding.added = 1;
    const V moved = node_.flag("iou_loss", false) ? c_.add(anchors, deltas)
                                                  : build::moved_boxes(node_, anchors, deltas, coding);
    boxes_ = build::clipped_boxes(node_, moved, limit(1), limit(0));
  }

  void mark(V is_worst) { scores_ = c_.where(is_worst, c_.number(scores_, -1), scores_); }

  /// Places of a map that reaches beyond the picture.
  void mark_those_outside() {
    const auto beyond = [&](int64_t index) {
      const auto axis = static_cast<size_t>(index);
      const V step = of_picture(index);
      const V real = c_.cast(c_.div(step, c_.number(step, static_cast<double>(stride_))), DType::kInt64);
      const ir::SymInt count = shape_[axis + 2];
      const V at = c_.expand(c_.positions(count, axis, 3), {shape_[2], shape_[3], each_});
      return c_.binary("greater_equal", c_.reshape(at, {1, node_.shape(scores_)[1]}), real);
    };
    mark(c_.binary("or", beyond(0), beyond(1)));
  }

  /// They grow by what they should be at least.
  void mark_small_ones() {
    const V least = c_.times(of_picture(2), static_cast<double>(node_.integer("rpn_min_size", 16)));
    const V low = c_.slice(boxes_, 2, 0, 2), high = c_.slice(boxes_, 2, 2, 2);
    const V sizes = c_.plus(c_.sub(high, low), 1);
    const V is_short = c_.binary("less", sizes, c_.unsqueeze(least, 2));
    const V either = c_.binary("or", c_.slice(is_short, 2, 0, 1), c_.slice(is_short, 2, 1, 1));
    const V half = c_.where(either, c_.unsqueeze(c_.times(least, 0.5), 2), c_.number(boxes_, 0));
    boxes_ = c_.concat({c_.sub(low, half), c_.add(high, half)}, 2);
    mark(c_.squeeze(either, 2));
  }

  void choose() {
    const ir::SymInt batch = shape_[0], n = node_.shape(scores_)[1];
    const ir::SymInt k = before_ > 0 ? min(n, before_) : n, room = min(k, after_);
    const V order = build::ordered_places(node_, scores_, 1, k, false);
    const V boxes = build::batched_gather(node_, boxes_, order, 1, 1),
            scores = c_.gather_elements(scores_, order, 1);
    build::BoxRows spec;
    spec.boxes = boxes;
    spec.scores = scores;
    spec.overlap = build::above_overlap(node_.real("threshold", 0.7));
    spec.added = 1;
    spec.most = after_;
    const V stays = build::kept_boxes(node_, spec);
    // Where they do not suffice, they begin again.
    const V count = build::true_count(node_, stays);
    const V some = c_.binary("max", count, c_.number(count, 1));
    const V turn = node_.add("mod", {c_.iota(after_, {1, after_}), some}, {{"fmod", int64_t{0}}});
    const V chosen = c_.gather_elements(build::true_first(node_, stays, room), turn, 1);
    const V picture = c_.cast(c_.expand(c_.positions(batch, 0, 3), {batch, after_, 1}), node_.dtype(boxes));
    const V all = c_.concat({picture, build::batched_gather(node_, boxes, chosen, 1, 1)}, 2);
    node_.set_output(0, c_.reshape(all, {batch * after_, 5}));
    if (node_.flag("output_score", false))
      node_.set_output(1, c_.reshape(c_.gather_elements(scores, chosen, 1), {batch * after_, 1}));
  }

  NodeContext& node_;
  Compose c_;
  const ir::SymShape shape_;
  int64_t before_ = 0, after_ = 0, stride_ = 0, each_ = 0;
  std::vector<double> anchors_;
  V scores_ = ir::kAbsent;  ///< [b,n]
  V boxes_ = ir::kAbsent;   ///< [b,n,4]
};

}  // namespace

// Operands: scores [b,2*anchors,H,W], the second half of which are those of a box, what is said of the boxes
// [b,4*anchors,H,W], and of the pictures their height, width and scale [b,3].
void convert_proposal(NodeContext& node) { Proposals(node).convert(); }

}  // namespace tensormill::frontend::mxnet
