// Functions of elements, of which CNTK makes no NaN of 0 and of numbers below it.
#include <array>

#include "compiler/build/rows.h"
#include "compiler/frontend/cntk/node_context.h"

namespace tensormill::frontend::cntk {

namespace {

using build::OpName;

constexpr std::array kUnary = {
    OpName{"Abs", "abs"},
    OpName{"Acos", "acos"},
    OpName{"Asin", "asin"},
    OpName{"Asinh", "asinh"},
    OpName{"Atan", "atan"},
    OpName{"Atanh", "atanh"},
    OpName{"Cos", "cos"},
    OpName{"Cosh", "cosh"},
    OpName{"ELU", "elu"},
    OpName{"Exp", "exp"},
    OpName{"Floor", "floor"},
    OpName{"Negate", "neg"},
    OpName{"ReLU", "relu"},
    OpName{"Sigmoid", "sigmoid"},
    OpName{"Sin", "sin"},
    OpName{"Sinh", "sinh"},
    OpName{"StableSigmoid", "sigmoid"},
    OpName{"Tan", "tan"},
    OpName{"Tanh", "tanh"},
};
constexpr std::array kBinary = {
    OpName{"ElementTimes", "mul"},
    OpName{"Minus", "sub"},
    OpName{"Plus", "add"},
};
constexpr std::array kComparisons = {
    OpName{"Equal", "equal"}, OpName{"Greater", "greater"},      OpName{"GreaterEqual", "greater_equal"},
    OpName{"Less", "less"},   OpName{"LessEqual", "less_equal"}, OpName{"NotEqual", "equal"},
};

/// So many operands, whose axes go together.
NodeContext::Aligned operands_of(NodeContext& node, size_t count) {
  if (node.num_operands() != count)
    node.invalid("it has " + std::to_string(node.num_operands()) + " operands");
  return node.aligned_operands();
}

}  // namespace

void convert_identity(NodeContext& node) {
  const Item x = node.operand(0);
  node.set_output(x.value, x.has_batch);
}

void convert_unary(NodeContext& node) {
  const Item x = node.operand(0);
  node.set_output(node.add(build::graph_name(node, kUnary, node.op()), {x.value}), x.has_batch);
}

// Of what is hardly more than 0 or less the logarithm is that of the least number.
void convert_log(NodeContext& node) {
  constexpr double kLeast = 1e-37, kLogOfLeast = -85.1;
  Compose c(node);
  const Item x = node.operand(0);
  const V is_least = c.binary("less", x.value, c.number(x.value, kLeast));
  node.set_output(c.where(is_least, c.number(x.value, kLogOfLeast), c.unary("log", x.value)), x.has_batch);
}

// The root of what is less than 0 is 0.
void convert_sqrt(NodeContext& node) {
  Compose c(node);
  const Item x = node.operand(0);
  node.set_output(c.unary("sqrt", c.binary("max", x.value, c.number(x.value, 0))), x.has_batch);
}

// 1 by 0 is 0.
void convert_reciprocal(NodeContext& node) {
  Compose c(node);
  const Item x = node.operand(0);
  const V zero = c.number(x.value, 0);
  node.set_output(c.where(c.binary("equal", x.value, zero), zero, c.unary("reciprocal", x.value)),
                  x.has_batch);
}

// 1 where x is more than 0, else -1.
void convert_straight_through(NodeContext& node) {
  Compose c(node);
  const Item x = node.operand(0);
  const V is_more = c.binary("greater", x.value, c.number(x.value, 0));
  node.set_output(c.where(is_more, c.number(x.value, 1), c.number(x.value, -1)), x.has_batch);
}

void convert_binary(NodeContext& node) {
  const NodeContext::Aligned both = operands_of(node, 2);
  node.set_output(node.add(build::graph_name(node, kBinary, node.op()), both.values), both.has_batch);
}

// 0 to any power but 0 is 0.
void convert_pow(NodeContext& node) {
  Compose c(node);
  const NodeContext::Aligned both = operands_of(node, 2);
  const V base = both.values[0], exponent = both.values[1], zero = c.number(base, 0);
  const V has_power = c.unary("not", c.binary("equal", exponent, c.number(exponent, 0)));
  const V is_none = c.binary("and", c.binary("equal", base, zero), has_power);
  node.set_output(c.where(is_none, zero, c.binary("pow", base, exponent)), both.has_batch);
}

// 1 or 0, of the operands' type.
void convert_comparison(NodeContext& node) {
  Compose c(node);
  const NodeContext::Aligned both = operands_of(node, 2);
  V holds = node.add(build::graph_name(node, kComparisons, node.op()), both.values);
  if (node.op() == "NotEqual") holds = c.unary("not", holds);
  node.set_output(c.cast(holds, node.dtype(both.values[0])), both.has_batch);
}

// log(e^a + e^b), by the larger one of both.
void convert_log_plus(NodeContext& node) {
  Compose c(node);
  const NodeContext::Aligned both = operands_of(node, 2);
  const V a = both.values[0], b = both.values[1];
  const V apart = c.unary("neg", c.unary("abs", c.sub(a, b)));
  node.set_output(c.add(c.binary("max", a, b), c.unary("log1p", c.unary("exp", apart))), both.has_batch);
}

// Where the first operand is not 0 the second, else the third.
void convert_select(NodeContext& node) {
  Compose c(node);
  const NodeContext::Aligned all = operands_of(node, 3);
  const V is_zero = c.binary("equal", all.values[0], c.number(all.values[0], 0));
  node.set_output(c.where(is_zero, all.values[2], all.values[1]), all.has_batch);
}

void convert_clip(NodeContext& node) {
  Compose c(node);
  const NodeContext::Aligned all = operands_of(node, 3);
  node.set_output(c.binary("min", c.binary("max", all.values[0], all.values[1]), all.values[2]),
                  all.has_batch);
}

void convert_cast(NodeContext& node) {
  const Item x = node.operand(0);
  const std::optional<DType> dtype = dtype_of(node.integer("newDataType"));
  if (!dtype) node.unsupported("newDataType", "elements of this type are not implemented");
  node.set_output(Compose(node).cast(x.value, *dtype), x.has_batch);
}

void convert_constant_op(NodeContext& node) {
  const Item x = node.operand(0);
  node.set_output(Compose(node).filled(node.dtype(x.value), node.shape(x.value), node.real("fillValue")),
                  x.has_batch);
}

void convert_eye_like(NodeContext& node) {
  Compose c(node);
  const Item x = node.operand(0);
  const ir::SymShape shape = node.shape(x.value);
  if (shape.size() != 2) node.invalid("operand 0 has rank " + std::to_string(shape.size()));
  const V is_on = c.binary("equal", c.positions(shape[0], 0, 2), c.positions(shape[1], 1, 2));
  node.set_output(c.cast(is_on, node.dtype(x.value)), x.has_batch);
}

}  // namespace tensormill::frontend::cntk
