// Direct convolution on blocks of channels: a tile of output columns x channel blocks stays in registers over
// the whole reduction; its step is a weight vector a block, an input element broadcast a column, and their
// products. Columns at the border of the image are cut off as loops of their own, so that taps outside are no
// code at all; rows of taps outside are skipped.
#include <algorithm>

#include "compiler/schedule/builder.h"
#include "compiler/schedule/templates/conv_tile.h"

namespace tensormill::schedule {

namespace {

/// The stages of a convolution with what follows it element by element.
struct ConvNest {
  std::string root;  ///< [N, blocks, rows, columns, lanes]
  std::string sums;  ///< the same, or [N, blocks, rows * columns, lanes]
  bool flat = false;
};

bool reads_elementwise(const Builder& builder, const std::string& root, const te::TensorNode* sums) {
  const Shape& shape = builder.stage(root).shape;
  const Shape strides = row_major_strides(shape);
  for (const Access& access : builder.accesses(root)) {
    if (access.tensor != sums) continue;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (access.irregular[d] || (shape[d] != 1 && access.stride[d] != strides[d])) return false;
    }
  }
  return true;
}

// The one sum and the one output; false for any other program.
bool find_nest(Builder& builder, ConvNest& nest) {
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.reduction && !nest.sums.empty()) return false;
    if (stage.reduction) nest.sums = name;
    if (stage.is_output && !nest.root.empty()) return false;
    if (stage.is_output) nest.root = name;
  }
  if (nest.sums.empty() || num_elements(builder.stage(nest.root).shape) == 0) return false;
  for (const Access& access : builder.accesses(nest.sums)) {
    if (builder.state().input_of(access.tensor) < 0) return false;
  }
  if (nest.sums == nest.root) {
    builder.step("cache_write", {nest.root});
    nest.sums = nest.root + ".c";
  } else {
    builder.inline_injective();
  }
  const Shape &root = builder.stage(nest.root).shape, &sums = builder.stage(nest.sums).shape;
  nest.flat = sums.size() == 4;
  if (root.size() != 5 || num_elements(root) != num_elements(sums) || builder.stage(nest.root).reduction)
    return false;
  return builder.readers(nest.sums) == std::vector<std::string>{nest.root} &&
         reads_elementwise(builder, nest.root, builder.stage(nest.sums).tensor.get());
}

bool is_power_of_two(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

int64_t reduction_steps(const Stage& stage) {
  int64_t steps = 1;
  for (size_t i = stage.shape.size(); i < static_cast<size_t>(stage.num_roots); ++i)
    steps *= stage.axes[i].extent;
  return steps;
}

// The largest divisor of `extent` that is at most `limit`.
int64_t divisor_up_to(int64_t extent, int64_t limit) {
  int64_t best = 1;
  for (int64_t d = 1; d <= std::min(extent, limit); ++d) {
    if (extent % d == 0) best = d;
  }
  return best;
}

// Bytes of the inputs of the sum: the one that moves with the columns, and the weights.
struct Traffic {
  double input = 0;
  double weights = 0;
};
Traffic traffic_of(const Builder& builder, const ConvNest& nest) {
  Traffic traffic;
  for (const Access& access : builder.accesses(nest.sums)) {
    const double bytes = 4.0 * static_cast<double>(num_elements(access.tensor->constant_shape()));
    const bool moves = access.stride[2] != 0 || access.irregular[2];
    (moves ? traffic.input : traffic.weights) += bytes;
  }
  return traffic;
}

// How many of `parts` equal parts of the image are walked for one group of weights: as many as keep their
// input in half of the L2 cache; all of them where the weights are the smaller trouble.
int64_t parts_per_pass(const Traffic& traffic, int64_t parts, const target::CpuFacts& facts) {
  const double half = static_cast<double>(facts.l2_bytes) / 2;
  const double fitting =
      traffic.input > half ? half / traffic.input * static_cast<double>(parts) : static_cast<double>(parts);
  return divisor_up_to(parts, std::max<int64_t>(static_cast<int64_t>(fitting), 1));
}

// The root's loops. Returns the loop at which the sums are computed.
std::string schedule_root(Builder& builder, const ConvNest& nest, const ConvTile& tile) {
  const std::string& root = nest.root;
  const Traffic traffic = traffic_of(builder, nest);
  const double work = static_cast<double>(num_elements(builder.stage(root).shape)) *
                      static_cast<double>(reduction_steps(builder.stage(nest.sums)));
  std::string columns = "i3", parts = "i2";
  if (nest.flat) columns = builder.fuse(root, {"i2", "i3"});
  builder.step("split", {root, columns, std::to_string(tile.columns)});
  builder.step("split", {root, "i1", std::to_string(tile.blocks)});
  if (nest.flat) parts = columns + ".o";
  const int64_t part = parts_per_pass(traffic, builder.extent(root, parts), builder.target().facts);
  builder.step("split", {root, parts, std::to_string(part)});
  // The images of a batch are walked inside, for the sake of the weights; their number stays out of the fused
  // index, which would otherwise hide from the bounds that a row belongs to one image.
  const std::vector<std::string> outer = {parts + ".o", "i1.o", parts + ".i"};
  std::vector<std::string> order = {root};
  order.insert(order.end(), outer.begin(), outer.end());
  order.push_back("i0");
  if (!nest.flat) order.push_back(columns + ".o");
  order.insert(order.end(), {columns + ".i", "i1.i", "i4"});
  builder.step("reorder", order);
  builder.parallelize(root, builder.fuse(root, outer), work);
  builder.step("unroll", {root, columns + ".i"});
  builder.step("unroll", {root, "i1.i"});
  builder.step("vectorize", {root, "i4"});
  return nest.flat ? "i0" : columns + ".o";
}

// The window's columns, whose copies at the border leave out what is outside, are unrolled up to this many.
constexpr int64_t kMaxWindowColumns = 11;

void schedule_sums(Builder& builder, const ConvNest& nest, const ConvTile& tile, const std::string& inside) {
  const std::string& sums = nest.sums;
  const std::string columns = nest.flat ? "i2" : "i3", lanes = nest.flat ? "i3" : "i4";
  builder.step("split", {sums, columns, std::to_string(tile.columns)});
  builder.step("split", {sums, "i1", std::to_string(tile.blocks)});
  std::vector<std::string> order = {sums, "i0", "i1.o"};
  if (!nest.flat) order.push_back("i2");
  order.push_back(columns + ".o");
  const std::vector<std::string> reduced = reduce_axes(builder.stage(sums));
  order.insert(order.end(), reduced.begin(), reduced.end());
  order.insert(order.end(), {columns + ".i", "i1.i", lanes});
  builder.step("reorder", order);
  if (!nest.flat && builder.extent(sums, "r2") <= kMaxWindowColumns) builder.step("unroll", {sums, "r2"});
  builder.step("unroll", {sums, columns + ".i"});
  builder.step("unroll", {sums, "i1.i"});
  builder.step("vectorize", {sums, lanes});
  builder.step("compute_at", {sums, nest.root, inside});
  builder.step("store_in", {sums, "register"});
}

}  // namespace

bool template_conv_blocked(Builder& builder) {
  ConvNest nest;
  if (!find_nest(builder, nest)) return false;
  const Stage& stage = builder.stage(nest.sums);
  const int64_t block = stage.shape.back(), lanes = builder.lanes(nest.sums);
  if (!is_power_of_two(block) || block > 4 * lanes || reduce_axes(stage).size() < 3) return false;
  if (stage.reduction->source[0]->op == te::ExprOp::kSelect) builder.step("guard", {nest.sums});
  const ConvExtents extents = {stage.shape[nest.flat ? 2 : 3], stage.shape[1], reduction_steps(stage),
                               std::max<int64_t>(block / lanes, 1)};
  const ConvTile tile = choose_conv_tile(extents, builder.target().facts);
  const std::string inside = schedule_root(builder, nest, tile);
  schedule_sums(builder, nest, tile, inside);
  return true;
}

}  // namespace tensormill::schedule
