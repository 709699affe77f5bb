/// The cases of operators over maps once more, with the channels last.
#include <set>

#include "compiler/ops/map_layout.h"
#include "tests/ops/cases/cases.h"

namespace tensormill::ops_cases {

void add_channels_last_cases(std::vector<Case>& cases);

namespace {

/// The shape with its axes where `first_from_last` finds them.
Shape last_shape(const Shape& first, const std::vector<size_t>& first_from_last) {
  Shape last(first.size());
  for (size_t i = 0; i < first.size(); ++i) last[first_from_last[i]] = first[i];
  return last;
}

ops::MapWeights weights_of(const std::string& op) {
  if (op == "conv" || op == "conv_integer") return ops::MapWeights::kConv;
  return op == "conv_transpose" ? ops::MapWeights::kTransposed : ops::MapWeights::kNone;
}

}  // namespace

void add_channels_last_cases(std::vector<Case>& cases) {
  const std::set<std::string> names = {"avg_pool",       "batch_norm",     "conv",          "conv_integer",
                                       "conv_transpose", "depth_to_space", "instance_norm", "lrn",
                                       "max_pool"};
  const size_t count = cases.size();
  for (size_t i = 0; i < count; ++i) {
    if (names.count(cases[i].op) == 0) continue;
    Case twin = cases[i];
    twin.variant += ", channels last";
    twin.attrs.set(ops::kChannelsLast, int64_t{1});
    Shape& map = twin.operands[0].shape;
    map = last_shape(map, ops::first_from_last(map.size()));
    const ops::MapWeights weights = weights_of(twin.op);
    if (weights != ops::MapWeights::kNone) {
      Shape& shape = twin.operands[1].shape;
      shape = last_shape(shape, ops::weights_from_last(weights, shape.size()));
    }
    cases.push_back(std::move(twin));
  }
}

}  // namespace tensormill::ops_cases
