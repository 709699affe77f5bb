// Normalizations with what they have learned.
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// [C] beside maps [N,C,...]
V along_channels(NodeContext& node, V row, V x) {
  if (node.rank(row) != 1 || node.rank(x) < 2)
    node.invalid("numbers of shape " + to_string(node.shape(row)) + " for the channels of " +
                 to_string(node.shape(x)));
  ir::SymShape shape(node.shape(x).size(), 1);
  shape[1] = node.shape(row)[0];
  return Compose(node).reshape(row, shape);
}

V affine(NodeContext& node, V y, V weight, V bias) {
  Compose c(node);
  if (weight != ir::kAbsent) y = c.mul(y, along_channels(node, weight, y));
  return bias == ir::kAbsent ? y : c.add(y, along_channels(node, bias, y));
}

V channel_row(NodeContext& node, V given, V like, double value) {
  if (given != ir::kAbsent) return Compose(node).cast(given, node.dtype(like));
  return Compose(node).filled(node.dtype(like), {node.shape(like)[1]}, value);
}

V batch_normed(NodeContext& node, V x, V mean, V variance) {
  const double eps = node.real("eps");
  const V weight = channel_row(node, node.optional_tensor("weight"), x, 1);
  const V bias = channel_row(node, node.optional_tensor("bias"), x, 0);
  return node.add(
      "batch_norm",
      {x, weight, bias, Compose(node).cast(mean, node.dtype(x)), Compose(node).cast(variance, node.dtype(x))},
      {{"epsilon", eps}});
}

/// Each group of channels of each image less its mean, by its deviation.
V group_normed(NodeContext& node, V x, const ir::SymInt& groups, double eps) {
  Compose c(node);
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 2 || !ir::demand_divisible(shape[1], groups))
    node.invalid(to_string(groups) + " groups of " + to_string(shape));
  const ir::SymInt rest = floordiv(num_elements(ir::SymShape(shape.begin() + 1, shape.end())), groups);
  const V rows = c.reshape(x, {shape[0], groups, rest});
  return c.reshape(node.add("layer_norm", {rows}, {{"axis", int64_t{2}}, {"epsilon", eps}}), shape);
}

}  // namespace

void convert_batch_norm(NodeContext& node) {
  const std::string& op = node.op();
  const V x = node.tensor("input");
  const bool is_legit = op == "_native_batch_norm_legit_no_training";
  if (!is_legit && node.flag("training"))
    node.unsupported("training",
                     "statistics of the batch are not implemented: call eval() before the export");
  const char *mean = "running_mean", *variance = "running_var";
  if (!node.has(mean) || !node.has(variance)) node.invalid("it has no running mean or variance");
  if (node.rank(x) < 2) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  node.set_output(0, batch_normed(node, x, node.tensor(mean), node.tensor(variance)));
  for (size_t i = 1; i < node.num_outputs(); ++i)
    if (node.is_used(i))
      node.unsupported("output " + std::to_string(i), "statistics of training are not implemented");
}

// By the statistics of the batch itself, which nothing keeps.
void convert_batch_norm_of_batch(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("input"), x = widened(node, given);
  if (!node.flag("training")) node.invalid("it has no running mean or variance");
  if (node.rank(x) < 2) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  std::vector<int64_t> axes{0};
  for (int64_t axis = 2; axis < node.rank(x); ++axis) axes.push_back(axis);
  const V mean = c.reduce("reduce_mean", x, axes, true), apart = c.sub(x, mean);
  const V variance = c.reduce("reduce_mean", c.mul(apart, apart), axes, true);
  const V factor = c.unary("rsqrt", c.plus(variance, node.real("eps")));
  const auto optional = [&](const char* name) {
    const V row = node.optional_tensor(name);
    return row == ir::kAbsent ? row : c.cast(row, node.dtype(x));
  };
  const V y = affine(node, c.mul(apart, factor), optional("weight"), optional("bias"));
  node.set_output(0, c.cast(y, node.dtype(given)));
  const ir::SymShape row{node.shape(x)[1]};
  node.set_output(1, c.reshape(mean, row));
  node.set_output(2, c.reshape(factor, row));
}

void convert_layer_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("input");
  const auto count = static_cast<int64_t>(node.syms("normalized_shape").size());
  const int64_t rank = node.rank(x);
  if (count < 1 || count > rank) node.invalid("normalized_shape has " + std::to_string(count) + " numbers");
  const V weight = node.optional_tensor("weight"), bias = node.optional_tensor("bias");
  std::vector<V> inputs{x};
  if (weight != ir::kAbsent || bias != ir::kAbsent) inputs.push_back(weight);
  if (bias != ir::kAbsent) inputs.push_back(bias);
  const double eps = node.real("eps");
  node.set_output(0, node.add("layer_norm", inputs, {{"axis", rank - count}, {"epsilon", eps}}));
  if (!node.may_be_used(1) && !node.may_be_used(2)) return;
  std::vector<int64_t> axes;
  for (int64_t axis = rank - count; axis < rank; ++axis) axes.push_back(axis);
  const V mean = c.reduce("reduce_mean", x, axes, true), apart = c.sub(x, mean);
  const V variance = c.reduce("reduce_mean", c.mul(apart, apart), axes, true);
  node.set_output(1, mean);
  node.set_output(2, c.unary("rsqrt", c.plus(variance, eps)));
}

void convert_group_norm(NodeContext& node) {
  const bool is_native = node.op() == "native_group_norm";
  const V x = node.tensor("input");
  if (is_native) {
    for (const char* size : {"N", "C", "HxW"}) static_cast<void>(node.sym(size));
    for (size_t i = 1; i < node.num_outputs(); ++i)
      if (node.is_used(i)) node.unsupported("output " + std::to_string(i), "it is not implemented");
  }
  const ir::SymInt groups = node.sym(is_native ? "group" : "num_groups");
  const V y = group_normed(node, x, groups, node.real("eps"));
  node.set_output(0, affine(node, y, node.optional_tensor("weight"), node.optional_tensor("bias")));
}

void convert_instance_norm(NodeContext& node) {
  const V x = node.tensor("input");
  if (node.rank(x) < 2) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  if (node.has("running_mean")) static_cast<void>(node.tensor("running_mean"));
  if (node.has("running_var")) static_cast<void>(node.tensor("running_var"));
  if (!node.flag("use_input_stats")) {
    return node.set_output(0, batch_normed(node, x, node.tensor("running_mean"), node.tensor("running_var")));
  }
  const V y = group_normed(node, x, node.shape(x)[1], node.real("eps"));
  node.set_output(0, affine(node, y, node.optional_tensor("weight"), node.optional_tensor("bias")));
}

// v * g / |v|, where each place of an axis has a length of its own; dim -1 has one for all.
void convert_weight_norm(NodeContext& node) {
  Compose c(node);
  const V v = node.tensor("v"), g = node.tensor("g");
  const int64_t rank = node.rank(v), axis = node.integer("dim");
  if (axis < -1 || axis >= rank)
    node.invalid("axis " + std::to_string(axis) + " of rank " + std::to_string(rank));
  ir::Ints axes = c.count_to(rank);
  if (axis >= 0) axes.erase(axes.begin() + axis);
  ir::SymShape lengths = node.shape(v);
  for (const int64_t each : axes) lengths[static_cast<size_t>(each)] = 1;
  const V length = c.reduce("reduce_l2", v, axes, true);
  node.set_output(0, c.mul(v, c.div(axis < 0 ? g : c.reshape(g, lengths), length)));
}

// By the root of the mean of squares; computed in float32.
void convert_rms_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("input");
  const auto count = static_cast<int64_t>(node.syms("normalized_shape").size());
  const int64_t rank = node.rank(x);
  if (count < 1 || count > rank) node.invalid("normalized_shape has " + std::to_string(count) + " numbers");
  std::vector<int64_t> axes;
  for (int64_t axis = rank - count; axis < rank; ++axis) axes.push_back(axis);
  const bool is_narrow = dtype_bytes(node.dtype(x)) < 4;
  // Without one it is the type's own: the smallest step from 1.
  const double eps = node.has("eps")                    ? node.real("eps")
                     : node.dtype(x) == DType::kFloat64 ? 0x1p-52
                                                        : 0x1p-23;
  const V wide = is_narrow ? c.cast(x, DType::kFloat32) : x;
  const V mean = c.reduce("reduce_mean", c.mul(wide, wide), axes, true);
  V y = c.cast(c.mul(wide, c.unary("rsqrt", c.plus(mean, eps))), node.dtype(x));
  if (const V weight = node.optional_tensor("weight"); weight != ir::kAbsent) y = c.mul(y, weight);
  node.set_output(0, y);
}

}  // namespace tensormill::frontend::pytorch
