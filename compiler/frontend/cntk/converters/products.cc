// Matrix products and convolutions.
#include <algorithm>

#include "compiler/build/maps/conv_pool.h"
#include "compiler/frontend/cntk/converters/windows.h"

namespace tensormill::frontend::cntk {

namespace {

/// The first and the last axes of a shape.
struct Parts {
  ir::SymShape first, last;
};
Parts split_at(const ir::SymShape& shape, size_t at) {
  const auto middle = shape.begin() + static_cast<std::ptrdiff_t>(at);
  return {{shape.begin(), middle}, {middle, shape.end()}};
}

/// With the batch in front where `item` has one.
ir::SymShape with_batch(NodeContext& node, const Item& item, ir::SymShape shape) {
  if (item.has_batch) shape.insert(shape.begin(), node.shape(item.value)[0]);
  return shape;
}

/// A map [N,C,...], where a value without a batch has one of 1.
V as_map(NodeContext& node, const Item& x) {
  ir::SymShape to = node.sample(x);
  to.insert(to.begin(), x.has_batch ? node.shape(x.value)[0] : ir::SymInt(1));
  return Compose(node).reshape(x.value, to);
}

/// Weights in the order of the tensor: [out,in,...], of a kernel without outputs with an axis for the only
/// one; of transposed convolutions [in,out,...].
V weights_of(NodeContext& node, int64_t rank) {
  const Item weights = node.operand(0);
  if (weights.has_batch) node.unsupported("operand 0", "weights of each sample are not implemented");
  const int64_t own = node.rank(weights.value);
  if (own == rank) return Compose(node).unsqueeze(weights.value, 0);
  if (own != rank + 1)
    node.invalid("weights of rank " + std::to_string(own) + " for an operand of rank " +
                 std::to_string(rank));
  return weights.value;
}

/// Extents of the weights' window, in CNTK's order.
ir::Ints window_of(NodeContext& node, V weights) {
  const ir::SymShape shape = node.shape(weights);
  if (!shape.is_constant()) node.invalid("weights of shape " + to_string(shape));
  const std::vector<int64_t> all = shape.hints();
  return {all.rbegin(), all.rend() - 1};
}

void check_sharing(NodeContext& node) {
  if (node.flag("sequential", false))
    node.unsupported("sequential", "convolutions along the steps of a sequence are not implemented");
  for (const bool is_shared : node.flags("sharing"))
    if (!is_shared) node.unsupported("sharing", "weights of each place are not implemented");
}

/// The result, whose sample has these axes.
void set_map(NodeContext& node, const Item& x, V map, const ir::SymShape& sample) {
  ir::SymShape to = sample;
  if (x.has_batch) to.insert(to.begin(), node.shape(map)[0]);
  node.set_output(Compose(node).reshape(map, to), x.has_batch);
}

void convolve(NodeContext& node, const Item& x, V weights, int64_t groups) {
  const V map = as_map(node, x);
  std::vector<AxisWindow> axes = axis_windows(node, window_of(node, weights), node.sample(x).size());
  const ir::SymShape in = node.shape(map), window = node.shape(weights);
  const AxisWindow& channels = axes[0];
  // Of one channel there is nothing to pad.
  const bool takes_all = (!channels.is_auto || same(in[1], 1)) && channels.lower == 0 &&
                         channels.upper == 0 && same(node.product(window[1], groups), in[1]);
  if (axes.size() < 2 || !takes_all)
    node.unsupported("kernelShape", "windows that move along the channels are not implemented");
  axes.erase(axes.begin());
  const MapWindows over = windows_over(node, map, axes, false);
  build::ConvSpec spec;
  spec.windows = over.windows;
  spec.groups = groups;
  const V y = build::conv(node, over.map, weights, ir::kAbsent, spec);
  set_map(node, x, y, split_at(node.shape(y), 1).last);
}

void convolve_transposed(NodeContext& node, const Item& x, V weights, int64_t groups) {
  Compose c(node);
  const V map = as_map(node, x);
  std::vector<AxisWindow> axes = axis_windows(node, window_of(node, weights), node.sample(x).size());
  for (const AxisWindow& axis : axes)
    if (axis.dilation != 1)
      node.unsupported("dilation", "transposed windows with gaps in them are not implemented");
  if (groups != 1) node.unsupported("groups", "groups of transposed convolutions are not implemented");
  if (axes.size() < 2) node.invalid("operand 1 has rank " + std::to_string(axes.size()));
  if (axes[0].is_auto) node.unsupported("autoPadding", "pads of channels are not implemented");
  axes.erase(axes.begin());
  ir::Ints extents = node.dims("outputShape");
  if (extents.size() == 1 && extents[0] == 0) extents.clear();
  if (!extents.empty() && extents.size() < axes.size())
    node.invalid("attribute outputShape has " + std::to_string(extents.size()) + " extents");
  std::vector<int64_t> strides;
  for (const AxisWindow& axis : axes) strides.push_back(axis.stride);
  V y = node.add("conv_transpose", {map, weights},
                 {{"strides", strides},
                  {"dilations", std::vector<int64_t>(axes.size(), 1)},
                  {"pads", std::vector<int64_t>(2 * axes.size(), 0)},
                  {"output_padding", std::vector<int64_t>(axes.size(), 0)},
                  {"group", int64_t{1}}});
  ir::SymShape pads(2 * (axes.size() + 2), 0);
  bool has_pads = false;
  for (size_t d = 0; d < axes.size(); ++d) {
    const std::optional<int64_t> extent =
        extents.empty() ? std::nullopt : std::optional(extents[axes.size() - 1 - d]);
    const Cut cut = transposed_cut(node, axes[d], node.shape(map)[d + 2], extent);
    pads[d + 2] = -cut.lower;
    pads[d + axes.size() + 4] = -cut.upper;
    has_pads = has_pads || !same(cut.lower, 0) || !same(cut.upper, 0);
  }
  if (has_pads) y = node.add("pad", {y}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
  set_map(node, x, y, split_at(node.shape(y), 1).last);
}

}  // namespace

// The left operand's axes are, in the order of a tensor, those that are summed over, then those of the
// result, of TransposeTimes the other way round; those of the right one that are not summed over come first.
void convert_times(NodeContext& node) {
  Compose c(node);
  const bool is_transposed = node.op() == "TransposeTimes";
  const Item left = node.operand(0), right = node.operand(1);
  node.skip("inferInputRankToMap");  // what it says has become the left operand's shape
  const int64_t given = node.integer("outputRank");
  ir::SymShape left_shape = node.sample(left);
  const auto left_rank = static_cast<int64_t>(left_shape.size());
  if (given < 0 || given > left_rank)
    node.invalid("outputRank is " + std::to_string(given) + " of rank " + std::to_string(left_rank));
  // A row of numbers that is turned round gives one number.
  if (is_transposed && given == 1 && left_rank == 1) left_shape.insert(left_shape.begin(), 1);
  const auto kept = static_cast<size_t>(given), summed = left_shape.size() - kept;
  const ir::SymShape right_shape = node.sample(right);
  if (right_shape.size() < summed)
    node.invalid("operands of shape " + to_string(left_shape) + " and " + to_string(right_shape));
  const Parts of_left = split_at(left_shape, is_transposed ? kept : summed),
              of_right = split_at(right_shape, right_shape.size() - summed);
  const ir::SymShape& over = is_transposed ? of_left.last : of_left.first;
  const ir::SymShape& out = is_transposed ? of_left.first : of_left.last;
  if (!ir::demand_equal(over, of_right.last))
    node.invalid("operands of shape " + to_string(left_shape) + " and " + to_string(right_shape));
  const V rows = c.reshape(
      right.value, with_batch(node, right, {num_elements(of_right.first), num_elements(of_right.last)}));
  const V columns = c.reshape(
      left.value, with_batch(node, left, {num_elements(of_left.first), num_elements(of_left.last)}));
  V product = ir::kAbsent;
  if (right.has_batch && !left.has_batch) {
    // One product of all samples' rows.
    const V all = c.reshape(rows, {node.shape(rows)[0] * node.shape(rows)[1], node.shape(rows)[2]});
    product = c.matmul(all, columns, is_transposed);
  } else {
    product = c.matmul(rows, columns, is_transposed);
  }
  ir::SymShape sample = of_right.first;
  sample.insert(sample.end(), out.begin(), out.end());
  const Item& like = right.has_batch ? right : left;
  node.set_output(node.with_sample(like, product, sample), like.has_batch);
}

void convert_convolution(NodeContext& node) {
  check_sharing(node);
  node.skip("kernelShape");  // as the weights have it
  const Item x = node.operand(1);
  if (node.sample_rank(x) < 1) node.invalid("operand 1 has no axis");
  const V weights = weights_of(node, node.sample_rank(x));
  const int64_t groups = node.integer("groups", 1);
  if (groups < 1) node.invalid(std::to_string(groups) + " groups");
  if (node.flag("transpose", false)) {
    convolve_transposed(node, x, weights, groups);
  } else {
    node.skip("outputShape");  // of transposed ones alone
    convolve(node, x, weights, groups);
  }
}

// Of a map of each channel, or of rows; the last operand, how many samples there were, is of no matter.
void convert_batch_normalization(NodeContext& node) {
  Compose c(node);
  const Item x = node.operand(0);
  const ir::SymShape sample = node.sample(x);
  const bool is_spatial = node.flag("spatial");
  const double epsilon = node.real("epsilon");
  if (node.has_operand(5)) node.skip_operand(5);
  if (sample.empty()) node.invalid("operand 0 has no axis");
  // Not spatial: each element has numbers of its own, as a channel has them otherwise.
  const V map = as_map(node, x);
  const ir::SymInt channels = is_spatial ? sample[0] : num_elements(sample);
  const V flat = is_spatial ? map : c.reshape(map, {node.shape(map)[0], channels});
  std::vector<V> operands{flat};
  for (size_t i = 1; i <= 4; ++i) operands.push_back(c.reshape(node.operand(i).value, {channels}));
  set_map(node, x, node.add("batch_norm", operands, {{"epsilon", epsilon}}), sample);
}

// A block of CNTK's own.
void convert_lrn_block(NodeContext& node) {
  const Item x = node.operand(0);
  const int64_t size = 2 * node.integer("depthRadius") + 1;
  const V y = node.add("lrn", {as_map(node, x)},
                       {{"size", size},
                        {"alpha", node.real("alpha")},
                        {"beta", node.real("beta")},
                        {"bias", node.real("bias")}});
  set_map(node, x, y, node.sample(x));
}

}  // namespace tensormill::frontend::cntk
