// Functions of elements: of one operand, of two and of several.
#include <algorithm>
#include <array>
#include <cctype>

#include "compiler/build/rows.h"
#include "compiler/frontend/caffe2/node_context.h"

namespace tensormill::frontend::caffe2 {

namespace {

using build::OpName;

constexpr std::array kUnary = {
    OpName{"Abs", "abs"},           OpName{"Acos", "acos"},
    OpName{"Asin", "asin"},         OpName{"Atan", "atan"},
    OpName{"Ceil", "ceil"},         OpName{"Cos", "cos"},
    OpName{"Cosh", "cosh"},         OpName{"Erf", "erf"},
    OpName{"Exp", "exp"},           OpName{"Floor", "floor"},
    OpName{"Log", "log"},           OpName{"Negative", "neg"},
    OpName{"Not", "not"},           OpName{"Reciprocal", "reciprocal"},
    OpName{"Relu", "relu"},         OpName{"Rsqrt", "rsqrt"},
    OpName{"Sigmoid", "sigmoid"},   OpName{"Sign", "sign"},
    OpName{"Sin", "sin"},           OpName{"Sinh", "sinh"},
    OpName{"Softplus", "softplus"}, OpName{"Softsign", "softsign"},
    OpName{"Sqrt", "sqrt"},         OpName{"Tan", "tan"},
    OpName{"Tanh", "tanh"},
};
constexpr std::array kBinary = {
    OpName{"Add", "add"},          OpName{"And", "and"},    OpName{"Div", "div"},       OpName{"EQ", "equal"},
    OpName{"GE", "greater_equal"}, OpName{"GT", "greater"}, OpName{"LE", "less_equal"}, OpName{"LT", "less"},
    OpName{"Mul", "mul"},          OpName{"Or", "or"},      OpName{"Sub", "sub"},       OpName{"Xor", "xor"},
};

/// Where the axes of operand 1 stand among those of operand 0: argument axis, or axis_str as a letter of
/// order; the last ones without it.
int64_t first_axis(NodeContext& node, int64_t rank, int64_t own) {
  const std::string letter = node.text("axis_str", ""), order = node.text("order", "NCHW");
  int64_t axis = node.integer("axis", -1);
  if (axis == -1 && !letter.empty()) {
    const size_t at = order.find(letter);
    if (at == std::string::npos) node.invalid("argument axis_str is \"" + letter + "\"");
    axis = static_cast<int64_t>(at);
  }
  if (axis == -1) axis = rank - own;
  if (axis < 0 || axis > rank - own)
    node.invalid("operands of rank " + std::to_string(rank) + " and " + std::to_string(own) + " from axis " +
                 std::to_string(axis) + " on");
  return axis;
}

/// Operand 1 in a form that broadcasts to operand 0: by numpy's rules, or, with argument broadcast, as the
/// first forms of these operators had it.
V second_of(NodeContext& node) {
  const V a = node.operand(0), b = node.operand(1);
  if (!node.flag("broadcast", false)) return b;
  Compose c(node);
  const ir::SymShape shape = node.shape(b);
  if (shape.is_constant() && num_elements(shape.hints()) == 1) {
    node.has("axis");
    node.has("axis_str");
    node.has("order");
    return c.reshape(b, {});
  }
  const int64_t axis = first_axis(node, node.rank(a), node.rank(b));
  ir::SymShape along(node.shape(a).size(), 1);
  for (size_t d = 0; d < shape.size(); ++d) {
    const size_t at = static_cast<size_t>(axis) + d;
    if (!ir::demand(ir::Relation::kEqual, shape[d], node.shape(a)[at]))
      node.invalid("operands of shape " + to_string(node.shape(a)) + " and " + to_string(shape) +
                   " from axis " + std::to_string(axis) + " on");
    along[at] = shape[d];
  }
  return c.reshape(b, along);
}

/// Numbers of channels, or one of all, beside x.
V along_channels(NodeContext& node, V x, V numbers) {
  Compose c(node);
  const bool is_last = node.is_channels_last();
  const ir::SymShape shape = node.shape(numbers);
  if (shape.size() > 1) node.invalid("operand 1 has rank " + std::to_string(shape.size()));
  if (shape.empty() || same(shape[0], 1)) return c.reshape(numbers, {});
  ir::SymShape along(node.shape(x).size(), 1);
  if (along.size() < 2) node.invalid("operand 0 has rank " + std::to_string(along.size()));
  (is_last ? along.back() : along[1]) = shape[0];
  return c.reshape(numbers, along);
}

V folded(NodeContext& node, const char* op) {
  const ir::CheckedList<V> all = node.operands();
  V y = all[0];
  for (size_t i = 1; i < all.size(); ++i) y = Compose(node).binary(op, y, all[i]);
  return y;
}

std::optional<DType> dtype_named(std::string name) {
  constexpr std::array<std::string_view, 14> kNames = {"UNDEFINED", "FLOAT", "INT32",   "BYTE",   "STRING",
                                                       "BOOL",      "UINT8", "INT8",    "UINT16", "INT16",
                                                       "INT64",     "",      "FLOAT16", "DOUBLE"};
  for (char& each : name) each = static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
  const auto* found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() || name.empty() ? std::nullopt : dtype_of(found - kNames.begin());
}

}  // namespace

void convert_unary(NodeContext& node) {
  node.set_output(node.add(build::graph_name(node, kUnary, node.op()), {node.operand(0)}));
}

void convert_binary(NodeContext& node) {
  const char* op = build::graph_name(node, kBinary, node.op());
  const V b = second_of(node);
  node.set_output(node.add(op, {node.operand(0), b}));
}

void convert_not_equal(NodeContext& node) {
  Compose c(node);
  const V b = second_of(node);
  node.set_output(c.unary("not", c.binary("equal", node.operand(0), b)));
}

// By argument exponent, or by operand 1.
void convert_pow(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0);
  const V y = node.has("exponent") ? c.number(x, node.real("exponent")) : second_of(node);
  node.set_output(c.binary("pow", x, y));
}

void convert_sqr(NodeContext& node) {
  const V x = node.operand(0);
  node.set_output(Compose(node).mul(x, x));
}

void convert_cube(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0);
  node.set_output(c.mul(c.mul(x, x), x));
}

void convert_swish(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0);
  node.set_output(c.mul(x, c.unary("sigmoid", x)));
}

void convert_gelu(NodeContext& node) {
  const bool is_fast = node.flag("fast_gelu", false);
  node.set_output(
      node.add("gelu", {node.operand(0)}, {{"approximate", std::string(is_fast ? "tanh" : "none")}}));
}

void convert_scale(NodeContext& node) {
  node.set_output(Compose(node).times(node.operand(0), node.real("scale", 1)));
}

void convert_elu(NodeContext& node) {
  node.set_output(node.add("elu", {node.operand(0)}, {{"alpha", node.real("alpha", 1)}}));
}

void convert_selu(NodeContext& node) {
  node.set_output(node.add("selu", {node.operand(0)},
                           {{"alpha", node.real("alpha", 1.6732632423543772)},
                            {"gamma", node.real("scale", 1.0507009873554805)}}));
}

void convert_leaky_relu(NodeContext& node) {
  node.set_output(node.add("leaky_relu", {node.operand(0)}, {{"alpha", node.real("alpha", 0.01)}}));
}

void convert_hard_sigmoid(NodeContext& node) {
  node.set_output(node.add("hard_sigmoid", {node.operand(0)},
                           {{"alpha", node.real("alpha", 0.2)}, {"beta", node.real("beta", 0.5)}}));
}

void convert_thresholded_relu(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0);
  const V is_more = c.binary("greater", x, c.number(x, node.real("alpha", 1)));
  node.set_output(c.where(is_more, x, c.number(x, 0)));
}

void convert_prelu(NodeContext& node) {
  const V x = node.operand(0);
  node.set_output(Compose(node).binary("prelu", x, along_channels(node, x, node.operand(1))));
}

void convert_clip(NodeContext& node) {
  Compose c(node);
  V x = node.operand(0);
  if (node.has("min")) x = c.binary("max", x, c.number(x, node.real("min")));
  if (node.has("max")) x = c.binary("min", x, c.number(x, node.real("max")));
  node.set_output(x);
}

// Max, Min and Sum.
void convert_variadic(NodeContext& node) {
  node.set_output(folded(node, node.op() == "Max" ? "max" : node.op() == "Min" ? "min" : "add"));
}

void convert_mean(NodeContext& node) {
  Compose c(node);
  const V sum = folded(node, "add");
  node.set_output(c.div(sum, c.number(sum, static_cast<double>(node.num_operands()))));
}

// With broadcast_on_rows a bool stands for a whole row.
void convert_where(NodeContext& node) {
  Compose c(node);
  V condition = node.operand(0);
  const V a = node.operand(1);
  if (node.flag("broadcast_on_rows", false) || node.flag("enable_broadcast", false)) {
    ir::SymShape along(node.shape(a).size(), 1);
    if (along.empty() || node.rank(condition) != 1) node.invalid("conditions that are not those of rows");
    along[0] = node.shape(condition)[0];
    condition = c.reshape(condition, along);
  }
  node.set_output(c.where(condition, a, node.operand(2)));
}

// Argument to: a number or a name.
void convert_cast(NodeContext& node) {
  const Argument* to = node.node().find("to");
  node.has("to");
  if (to == nullptr) node.invalid("argument to is missing");
  const std::optional<DType> dtype =
      to->text ? dtype_named(node.text("to", "")) : dtype_of(node.integer("to"));
  if (!dtype) node.unsupported("to", "elements of this type are not implemented");
  node.set_output(Compose(node).cast(node.operand(0), *dtype));
}

// Of what is before the axis each has one sum of all that is behind it.
void convert_softmax(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0);
  const ir::SymShape shape = node.shape(x);
  const int64_t rank = node.rank(x), axis = node.axis("axis", rank, 1);
  if (axis == rank - 1) return node.set_output(node.add("softmax", {x}, {{"axis", axis}}));
  const V rows = node.as_rows(x, axis);
  node.set_output(c.reshape(node.add("softmax", {rows}, {{"axis", int64_t{1}}}), shape));
}

}  // namespace tensormill::frontend::caffe2
