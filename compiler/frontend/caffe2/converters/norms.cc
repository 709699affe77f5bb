// Elements less their mean, by their deviation, or by what is around them.
#include "compiler/frontend/caffe2/node_context.h"

#include "compiler/build/maps/channels.h"

namespace tensormill::frontend::caffe2 {

namespace {

/// `convert` of x [N,C,...], be its channels behind the batch or last.
template <typename Convert>
V over_channels(NodeContext& node, V x, bool is_last, Convert convert) {
  return is_last && node.rank(x) > 2 ? build::with_channels_first(node, x, convert) : convert(x);
}

/// [C] beside maps [N,C,...].
V channel_row(NodeContext& node, V row, V x) {
  ir::SymShape along(node.shape(x).size(), 1);
  if (along.size() < 2) node.invalid("operand 0 has rank " + std::to_string(along.size()));
  along[1] = num_elements(node.shape(row));
  return Compose(node).reshape(row, along);
}

/// The means of the last axis of x, and, of `epsilon` added to their variances, the roots; both of extent 1.
struct Moments {
  V mean, deviation;
};
Moments moments_of(NodeContext& node, V x, double epsilon) {
  Compose c(node);
  const int64_t last = node.rank(x) - 1;
  const V mean = c.reduce("reduce_mean", x, {last}, true), off = c.sub(x, mean);
  const V variance = c.reduce("reduce_mean", c.mul(off, off), {last}, true);
  return {mean, c.unary("sqrt", c.plus(variance, epsilon))};
}

V normalized(NodeContext& node, V x, int64_t axis, double epsilon) {
  return node.add("layer_norm", {x}, {{"axis", axis}, {"epsilon", epsilon}});
}

}  // namespace

void convert_spatial_bn(NodeContext& node) {
  if (!node.flag("is_test", false))
    node.unsupported("is_test", "statistics of the batch are for training: save the net for inference");
  const double epsilon = node.real("epsilon", 1e-5);
  const std::vector<V> rows{node.operand(1), node.operand(2), node.operand(3), node.operand(4)};
  node.set_output(over_channels(node, node.operand(0), node.is_channels_last(), [&](V x) {
    return node.add("batch_norm", {x, rows[0], rows[1], rows[2], rows[3]}, {{"epsilon", epsilon}});
  }));
}

void convert_lrn(NodeContext& node) {
  const int64_t size = node.integer("size");
  if (size < 1 || size > (1 << 20) || size % 2 == 0)
    node.invalid("a neighbourhood of " + std::to_string(size));
  const ir::Attrs attrs{{"size", size},
                        {"alpha", node.real("alpha", 0)},
                        {"beta", node.real("beta", 0)},
                        {"bias", node.real("bias", 1)}};
  node.set_output(over_channels(node, node.operand(0), node.is_channels_last(),
                                [&](V x) { return node.add("lrn", {x}, attrs); }));
}

void convert_instance_norm(NodeContext& node) {
  Compose c(node);
  const double epsilon = node.real("epsilon", 1e-5);
  const V scale = node.operand(1), bias = node.operand(2);
  node.set_output(over_channels(node, node.operand(0), node.is_channels_last(), [&](V x) {
    const ir::SymShape shape = node.shape(x);
    if (shape.size() < 3) node.invalid("operand 0 has rank " + std::to_string(shape.size()));
    const ir::SymInt rest = num_elements(ir::SymShape(shape.begin() + 2, shape.end()));
    const V y = c.reshape(normalized(node, c.reshape(x, {shape[0], shape[1], rest}), 2, epsilon), shape);
    return c.add(c.mul(y, channel_row(node, scale, x)), channel_row(node, bias, x));
  }));
}

// Outputs: the elements, and of each part its mean and the root of its variance.
void convert_layer_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0);
  const ir::SymShape shape = node.shape(x);
  const int64_t axis = node.axis("axis", node.rank(x), 1);
  const double epsilon = node.real("epsilon", 1e-5);
  const ir::SymShape outer(shape.begin(), shape.begin() + axis), inner(shape.begin() + axis, shape.end());
  V y = normalized(node, x, axis, epsilon);
  if (node.flag("elementwise_affine", false))
    y = c.add(c.mul(y, c.reshape(node.operand(1), inner)), c.reshape(node.operand(2), inner));
  node.set_output(y);
  if (node.num_outputs() < 2) return;
  const Moments moments = moments_of(node, c.reshape(x, {num_elements(outer), num_elements(inner)}), epsilon);
  ir::SymShape one = outer;
  one.push_back(1);
  node.set_output(1, c.reshape(moments.mean, one));
  if (node.has_output(2)) node.set_output(2, c.reshape(moments.deviation, one));
}

// Outputs: the elements, and of each group its mean and one by the root of its variance.
void convert_group_norm(NodeContext& node) {
  Compose c(node);
  const int64_t groups = node.integer("group", 32);
  const double epsilon = node.real("epsilon", 1e-5);
  const bool is_last = node.is_channels_last();
  const V scale = node.operand(1), bias = node.operand(2);
  ir::SymShape parts;
  V rows = ir::kAbsent;
  node.set_output(over_channels(node, node.operand(0), is_last, [&](V x) {
    const ir::SymShape shape = node.shape(x);
    if (shape.size() < 2 || groups < 1 || !ir::demand_divisible(shape[1], groups))
      node.invalid(std::to_string(groups) + " groups of an operand of shape " + to_string(shape));
    const ir::SymInt rest = num_elements(ir::SymShape(shape.begin() + 2, shape.end()));
    parts = {shape[0], groups, floordiv(shape[1], groups) * rest};
    rows = c.reshape(x, parts);
    const V y = c.reshape(normalized(node, rows, 2, epsilon), shape);
    return c.add(c.mul(y, channel_row(node, scale, x)), channel_row(node, bias, x));
  }));
  if (node.num_outputs() < 2) return;
  const Moments moments = moments_of(node, rows, epsilon);
  node.set_output(1, c.reshape(moments.mean, {parts[0], parts[1]}));
  if (node.has_output(2))
    node.set_output(2, c.unary("reciprocal", c.reshape(moments.deviation, {parts[0], parts[1]})));
}

// By the length along an axis.
void convert_normalize(NodeContext& node) {
  constexpr double kLeastLength = 1e-12;
  Compose c(node);
  const V x = node.operand(0);
  const V length = c.reduce("reduce_l2", x, {node.axis("axis", node.rank(x), -1)}, true);
  node.set_output(c.div(x, c.binary("max", length, c.number(length, kLeastLength))));
}

}  // namespace tensormill::frontend::caffe2
