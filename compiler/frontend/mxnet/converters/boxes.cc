// Boxes of detectors: made, compared, and as networks say them.
#include "compiler/build/pictures/boxes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/build/moves/places.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

struct Side {
  double width = 0, height = 0;  ///< halves
};

/// Every size of the first ratio, and the first size of every other one.
std::vector<Side> sides_of(const std::vector<double>& sizes, const std::vector<double>& ratios,
                           double shape) {
  std::vector<Side> sides;
  const auto add = [&](double size, double ratio) {
    sides.push_back({size * shape * std::sqrt(ratio) / 2, size / std::sqrt(ratio) / 2});
  };
  for (const double size : sizes) add(size, ratios[0]);
  for (size_t i = 1; i < ratios.size(); ++i) add(sizes[0], ratios[i]);
  return sides;
}

/// Attribute `name`: whether boxes are centers and sizes, else corners.
bool is_centered(NodeContext& node, const char* name, const char* otherwise) {
  const std::string format = node.text(name, otherwise);
  if (format != "corner" && format != "center")
    node.invalid(std::string(name) + " is \"" + format.substr(0, 40) + "\"");
  return format == "center";
}

/// Boxes [...,4] as rows of corners [n,4].
V corner_rows(NodeContext& node, V boxes, bool is_centered) {
  const ir::SymShape shape = node.shape(boxes);
  if (shape.size() < 2 || shape.back() != 4) node.invalid("boxes of shape " + to_string(shape));
  const ir::SymInt count = num_elements(ir::SymShape(shape.begin(), shape.end() - 1));
  const V rows = Compose(node).reshape(boxes, {count, 4});
  return is_centered ? build::corners_of(node, rows) : rows;
}

/// What lies between the corners of boxes [...,4], none where they are turned round.
V area_of(Compose& c, V boxes) {
  const int64_t last = static_cast<int64_t>(c.shape(boxes).size()) - 1;
  const V size = c.sub(c.slice(boxes, last, 2, 2), c.slice(boxes, last, 0, 2));
  const V sides = c.binary("max", size, c.number(size, 0));
  return c.squeeze(c.mul(c.slice(sides, last, 0, 1), c.slice(sides, last, 1, 1)), last);
}

}  // namespace

// The part of its union that each box of the one operand shares with each box of the other.
void convert_box_iou(NodeContext& node) {
  Compose c(node);
  const bool centered = is_centered(node, "format", "corner");
  const V a = c.unsqueeze(corner_rows(node, node.input(0), centered), 1),
          b = c.unsqueeze(corner_rows(node, node.input(1), centered), 0);
  const V shared = area_of(c, c.concat({c.binary("max", c.slice(a, 2, 0, 2), c.slice(b, 2, 0, 2)),
                                        c.binary("min", c.slice(a, 2, 2, 2), c.slice(b, 2, 2, 2))},
                                       2));
  const V zero = c.number(shared, 0), is_shared = c.binary("greater", shared, zero);
  const V whole = c.sub(c.add(area_of(c, a), area_of(c, b)), shared);
  const V part = c.where(is_shared, c.div(shared, c.where(is_shared, whole, c.number(whole, 1))), zero);
  const ir::SymShape first = node.shape(node.input(0)), second = node.shape(node.input(1));
  ir::SymShape to(first.begin(), first.end() - 1);
  to.insert(to.end(), second.begin(), second.end() - 1);
  node.set_output(c.reshape(part, to));
}

// What a network says of boxes [b,n,4], with its anchors [1,n,4].
void convert_box_decode(NodeContext& node) {
  const V deltas = node.input(0);
  V anchors = node.input(1);
  if (node.rank(deltas) != 3 || node.rank(anchors) != 3 || node.shape(deltas)[2] != 4 ||
      node.shape(anchors)[2] != 4)
    node.invalid("boxes of shape " + to_string(node.shape(deltas)) + ", anchors of " +
                 to_string(node.shape(anchors)));
  if (is_centered(node, "format", "center")) anchors = build::corners_of(node, anchors);
  build::BoxCoding coding;
  constexpr std::array kNames = {"std0", "std1", "std2", "std3"};
  for (size_t i = 0; i < kNames.size(); ++i) coding.scales[i] = node.real(kNames[i], 1);
  if (const double clip = node.real("clip", -1); clip > 0) coding.most_log = clip;
  node.set_output(build::moved_boxes(node, anchors, deltas, coding));
}

// What a network is to say of anchors [b,n,4] for the boxes [b,m,4] that match them. Results: that, and 1
// where a sample is one.
void convert_box_encode(NodeContext& node) {
  Compose c(node);
  const V samples = node.input(0), anchors = node.input(2), boxes = node.input(3);
  if (node.rank(samples) != 2 || node.rank(anchors) != 3 || node.rank(boxes) != 3 ||
      node.shape(anchors)[2] != 4 || node.shape(boxes)[2] != 4)
    node.invalid("anchors of shape " + to_string(node.shape(anchors)) + ", boxes of " +
                 to_string(node.shape(boxes)));
  const V places = c.cast(node.input(1), DType::kInt64);
  const V last = c.dims({node.shape(boxes)[1] - 1}, {});
  const V within = c.binary("min", c.binary("max", places, c.number(places, 0)), last);
  const V from = build::centers_of(node, anchors),
          to = build::centers_of(node, build::batched_gather(node, boxes, within, 1, 1));
  const V size = c.slice(from, 2, 2, 2);
  const V moved = c.div(c.sub(c.slice(to, 2, 0, 2), c.slice(from, 2, 0, 2)), size),
          grown = c.unary("log", c.div(c.slice(to, 2, 2, 2), size));
  const V all = c.div(c.sub(c.concat({moved, grown}, 2), node.input(4)), node.input(5));
  const V is_one = c.unsqueeze(c.binary("greater", samples, c.number(samples, 0.5)), 2);
  const V ones = c.expand(c.cast(is_one, node.dtype(anchors)), node.shape(anchors));
  node.set_outputs({c.where(is_one, all, c.number(all, 0)), ones});
}

// Boxes [1,places*sides,4] around the places of a map: left, top, right, bottom.
void convert_box_prior(NodeContext& node) {
  const V x = node.input(0);
  const ir::SymShape s = node.shape(x);
  if (s.size() != 4) node.invalid("the input has rank " + std::to_string(s.size()));
  if (!s[2].is_constant() || !s[3].is_constant())
    node.unsupported("operands", "boxes of a map of free extents are not implemented");
  const int64_t rows = s[2].hint(), columns = s[3].hint();
  const ir::CheckedList<double> sizes = node.reals("sizes", std::vector<double>{1}),
                                ratios = node.reals("ratios", std::vector<double>{1}),
                                steps = node.reals("steps", std::vector<double>{-1, -1}),
                                offsets = node.reals("offsets", std::vector<double>{0.5, 0.5});
  constexpr size_t kMostSides = 4096;
  const size_t each = sizes.size() + ratios.size();
  if (sizes.empty() || ratios.empty() || each > kMostSides || steps.size() != 2 || offsets.size() != 2 ||
      rows < 1 || columns < 1 || rows > build::kMaxListed / columns / (4 * static_cast<int64_t>(each)))
    node.invalid("boxes of " + std::to_string(sizes.size()) + " sizes and " + std::to_string(ratios.size()) +
                 " ratios of a map of shape " + to_string(s));
  const bool clips = node.flag("clip", false);
  const double high = static_cast<double>(rows), wide = static_cast<double>(columns);
  const double down = steps[0] > 0 ? steps[0] : 1 / high, over = steps[1] > 0 ? steps[1] : 1 / wide;
  std::vector<double> all;
  const std::vector<Side> sides = sides_of(sizes, ratios, high / wide);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      for (const Side& side : sides) {
        const double y = (static_cast<double>(row) + offsets[0]) * down,
                     x_at = (static_cast<double>(column) + offsets[1]) * over;
        for (const double edge : {x_at - side.width, y - side.height, x_at + side.width, y + side.height})
          all.push_back(clips ? std::clamp(edge, 0.0, 1.0) : edge);
      }
  const auto count = static_cast<int64_t>(all.size() / 4);
  node.set_output(Compose(node).doubles(node.dtype(x), all, {1, count, 4}));
}

}  // namespace tensormill::frontend::mxnet
