// Functions that layers end in, of which losses are what a run without training makes of them.
#include <array>
#include <utility>

#include "compiler/build/rows.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

/// Along all axes behind the batch as one.
V softmax_of_rows(NodeContext& node, V x) {
  Compose c(node);
  const ir::SymShape shape = node.shape(x);
  if (shape.empty()) node.invalid("the input has no dims");
  const V rows = c.reshape(x, {shape[0], num_elements(ir::SymShape(shape.begin() + 1, shape.end()))});
  return c.reshape(node.add("softmax", {rows}, {{"axis", int64_t{1}}}), shape);
}

V softmax_along(NodeContext& node, V x, int64_t axis) {
  return node.add("softmax", {x}, {{"axis", node.normalize_axis(axis, node.rank(x))}});
}

/// x where an element of the axis lies before the length of its row, else `outside`.
V within_lengths(NodeContext& node, V x, V lengths, int64_t axis, double outside) {
  Compose c(node);
  const auto rank = static_cast<size_t>(node.rank(x));
  ir::SymShape along = node.shape(x);
  along[static_cast<size_t>(axis)] = 1;
  const V place = c.positions(node.shape(x)[static_cast<size_t>(axis)], static_cast<size_t>(axis), rank);
  const V is_inside = c.binary("less", place, c.reshape(c.cast(lengths, DType::kInt64), along));
  return c.where(is_inside, x, c.number(x, outside));
}

}  // namespace

void convert_activation(NodeContext& node) {
  Compose c(node);
  using build::OpName;
  constexpr std::array kNames = {OpName{"relu", "relu"},         OpName{"sigmoid", "sigmoid"},
                                 OpName{"tanh", "tanh"},         OpName{"softrelu", "softplus"},
                                 OpName{"softsign", "softsign"}, OpName{"mish", "mish"}};
  const V x = node.input(0);
  const std::string name = node.text("act_type");
  if (name == "log_sigmoid") return node.set_output(c.unary("neg", c.unary("softplus", c.unary("neg", x))));
  for (const auto& [word, op] : kNames)
    if (name == word) return node.set_output(c.unary(op, x));
  node.unsupported("act_type", "\"" + name.substr(0, 40) + "\" is not implemented");
}

void convert_leaky_relu(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const std::string name = node.text("act_type", "leaky");
  const double slope = node.real("slope", 0.25), low = node.real("lower_bound", 0.125),
               high = node.real("upper_bound", 0.334);
  if (name == "leaky") return node.set_output(node.add("leaky_relu", {x}, {{"alpha", slope}}));
  // The slope is random in training alone.
  if (name == "rrelu") return node.set_output(node.add("leaky_relu", {x}, {{"alpha", (low + high) / 2}}));
  if (name == "elu") return node.set_output(node.add("elu", {x}, {{"alpha", slope}}));
  if (name == "selu") return node.set_output(c.unary("selu", x));
  if (name == "gelu") return node.set_output(node.add("gelu", {x}, {{"approximate", std::string("none")}}));
  if (name != "prelu") node.unsupported("act_type", "\"" + name.substr(0, 40) + "\" is not implemented");
  V gamma = node.input_or(1, "gamma");
  if (node.rank(gamma) == 1 && node.rank(x) > 1) {
    ir::SymShape along(node.shape(x).size(), 1);
    along[1] = node.shape(gamma)[0];
    gamma = c.reshape(gamma, along);
  }
  node.set_output(c.binary("prelu", x, gamma));
}

// softmax, log_softmax and softmin. Behind a row's length all is 0.
void convert_softmax(NodeContext& node) {
  Compose c(node);
  V x = node.input(0);
  const int64_t axis = node.axis("axis", node.rank(x), -1);
  const double heat = node.real("temperature", 1);
  if (node.op() == "softmin") x = c.unary("neg", x);
  if (heat != 1) x = c.times(x, 1 / heat);
  const bool has_length = node.flag("use_length", false);
  if (has_length)
    x = within_lengths(node, x, node.input(1), axis, node.dtype(x) == DType::kFloat16 ? -6e4 : -1e38);
  const bool is_log = node.op() == "log_softmax";
  V y = node.add(is_log ? "log_softmax" : "softmax", {x}, {{"axis", axis}});
  if (has_length) y = within_lengths(node, y, node.input(1), axis, 0);
  node.set_output(c.cast(y, node.dtype_named("dtype", node.dtype(y))));
}

void convert_softmax_activation(NodeContext& node) {
  const V x = node.input(0);
  const std::string mode = node.text("mode", "instance");
  if (mode != "instance" && mode != "channel") node.invalid("mode is \"" + mode.substr(0, 40) + "\"");
  node.set_output(mode == "channel" ? softmax_along(node, x, 1) : softmax_of_rows(node, x));
}

void convert_softmax_output(NodeContext& node) {
  const V x = node.input(0);
  const bool is_multi = node.flag("multi_output", false), keeps = node.flag("preserve_shape", false);
  node.set_output(is_multi ? softmax_along(node, x, 1)
                  : keeps  ? softmax_along(node, x, -1)
                           : softmax_of_rows(node, x));
}

void convert_logistic_output(NodeContext& node) {
  node.set_output(Compose(node).unary("sigmoid", node.input(0)));
}

void convert_dropout(NodeContext& node) {
  if (node.text("mode", "training") != "training")
    node.unsupported("mode", "random numbers in a run are not implemented");
  node.set_output(node.input(0));
}

}  // namespace tensormill::frontend::mxnet
