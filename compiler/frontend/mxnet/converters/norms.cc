// Elements less their mean, by their deviation, or by their length.
#include <algorithm>

#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

/// [C] beside x, along an axis of it.
V along_axis(NodeContext& node, V row, V x, int64_t axis) {
  ir::SymShape shape(node.shape(x).size(), 1);
  shape[static_cast<size_t>(axis)] = num_elements(node.shape(row));
  return Compose(node).reshape(row, shape);
}

/// Less its mean along its last axis, by its deviation.
V normalized_rows(NodeContext& node, V rows, double epsilon) {
  return node.add("layer_norm", {rows}, {{"axis", node.rank(rows) - 1}, {"epsilon", epsilon}});
}

ir::SymInt behind(const ir::SymShape& shape, size_t first) {
  return num_elements(ir::SymShape(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end()));
}

void check_statistics(NodeContext& node) {
  // What training alone reads is not there; the outputs behind the first are not asked for.
  node.skip("output_mean_var");
}

}  // namespace

// Of a run without training: by the statistics that the file has. Means and variances may have a wider type.
void convert_batch_norm(NodeContext& node) {
  Compose c(node);
  V x = node.input(0);
  const V beta = node.input_or(2, "beta"), mean = node.input_or(3, "moving_mean"),
          variance = node.input_or(4, "moving_var");
  V gamma = node.input_or(1, "gamma");
  check_statistics(node);
  if (node.flag("fix_gamma", true)) gamma = c.filled(node.dtype(gamma), node.shape(gamma), 1);
  const int64_t axis = node.axis("axis", node.rank(x), 1);
  const double epsilon = node.real("eps", 1e-3);
  const DType dtype = node.dtype(x);
  x = c.cast(x, node.dtype(mean));
  if (axis == 1) {
    const V y = node.add("batch_norm", {x, gamma, beta, mean, variance}, {{"epsilon", epsilon}});
    return node.set_output(c.cast(y, dtype));
  }
  const V scale = c.mul(gamma, c.unary("rsqrt", c.plus(variance, epsilon)));
  const V less = c.sub(x, along_axis(node, mean, x, axis));
  const V y = c.add(c.mul(less, along_axis(node, scale, x, axis)), along_axis(node, beta, x, axis));
  node.set_output(c.cast(y, dtype));
}

void convert_lrn(NodeContext& node) {
  const int64_t size = node.integer("nsize");
  if (size < 1 || size > (1 << 20)) node.invalid("a neighbourhood of " + std::to_string(size));
  node.set_output(node.add("lrn", {node.input(0)},
                           {{"size", size},
                            {"alpha", node.real("alpha", 1e-4)},
                            {"beta", node.real("beta", 0.75)},
                            {"bias", node.real("knorm", 2)}}));
}

void convert_l2_normalization(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const int64_t rank = node.rank(x);
  const std::string mode = node.text("mode", "instance");
  if (mode != "instance" && mode != "channel" && mode != "spatial")
    node.invalid("mode is \"" + mode.substr(0, 40) + "\"");
  if (rank < (mode == "spatial" ? 3 : 2)) node.invalid("the input has rank " + std::to_string(rank));
  std::vector<int64_t> axes;
  for (int64_t axis = mode == "spatial" ? 2 : 1; axis < rank; ++axis) axes.push_back(axis);
  if (mode == "channel") axes = {1};
  const V squares = c.reduce("reduce_sum_square", x, axes, true);
  node.set_output(c.div(x, c.unary("sqrt", c.plus(squares, node.real("eps", 1e-10)))));
}

void convert_instance_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 3) node.invalid("the input has rank " + std::to_string(shape.size()));
  const V rows = c.reshape(x, {shape[0], shape[1], behind(shape, 2)});
  const V y = c.reshape(normalized_rows(node, rows, node.real("eps", 1e-3)), shape);
  node.set_output(c.add(c.mul(y, along_axis(node, node.input_or(1, "gamma"), x, 1)),
                        along_axis(node, node.input_or(2, "beta"), x, 1)));
}

// An axis in the middle is brought to the end.
void convert_layer_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  check_statistics(node);
  const int64_t rank = node.rank(x), axis = node.axis("axis", rank, -1);
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < rank; ++d) perm.push_back(d);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  const bool is_last = axis == rank - 1;
  V y = normalized_rows(node, is_last ? x : c.transpose(x, perm), node.real("eps", 1e-5));
  if (!is_last) y = c.transpose(y, perm);
  node.set_output(c.add(c.mul(y, along_axis(node, node.input_or(1, "gamma"), x, axis)),
                        along_axis(node, node.input_or(2, "beta"), x, axis)));
}

// Factors are those of groups, or, of later versions, of channels.
void convert_group_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0), gamma = node.input_or(1, "gamma"), beta = node.input_or(2, "beta");
  check_statistics(node);
  const ir::SymShape shape = node.shape(x);
  const int64_t groups = node.integer("num_groups", 1);
  if (shape.size() < 3 || groups < 1 || !ir::demand_divisible(shape[1], groups))
    node.invalid(std::to_string(groups) + " groups of an input of shape " + to_string(shape));
  const V rows = c.reshape(x, {shape[0], groups, floordiv(shape[1], groups) * behind(shape, 2)});
  V y = normalized_rows(node, rows, node.real("eps", 1e-5));
  const bool is_of_groups = same(num_elements(node.shape(gamma)), groups) && !same(shape[1], groups);
  if (is_of_groups) y = c.add(c.mul(y, along_axis(node, gamma, y, 1)), along_axis(node, beta, y, 1));
  y = c.reshape(y, shape);
  if (!is_of_groups) y = c.add(c.mul(y, along_axis(node, gamma, x, 1)), along_axis(node, beta, x, 1));
  node.set_output(y);
}

}  // namespace tensormill::frontend::mxnet
