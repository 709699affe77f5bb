// Boxes of detectors.
#include <algorithm>
#include <cmath>

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

}  // namespace

// Boxes [1,places*sides,4] around the places of a map: left, top, right, bottom.
void convert_box_prior(NodeContext& node) {
  const V x = node.input(0);
  const ir::SymShape s = node.shape(x);
  if (s.size() != 4) node.invalid("the input has rank " + std::to_string(s.size()));
  if (!s[2].is_constant() || !s[3].is_constant())
    node.unsupported("operands", "boxes of a map of free extents are not implemented");
  const int64_t rows = s[2].hint(), columns = s[3].hint();
  const std::vector<double> sizes = node.reals("sizes", std::vector<double>{1}),
                            ratios = node.reals("ratios", std::vector<double>{1}),
                            steps = node.reals("steps", std::vector<double>{-1, -1}),
                            offsets = node.reals("offsets", std::vector<double>{0.5, 0.5});
  if (sizes.empty() || ratios.empty() || steps.size() != 2 || offsets.size() != 2 || rows < 1 ||
      columns < 1 || rows > build::kMaxListed / columns / 64 || sizes.size() + ratios.size() > 16)
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
