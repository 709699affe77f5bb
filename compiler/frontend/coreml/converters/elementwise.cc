// Functions of elements: of one operand and of two.
#include <array>

#include "compiler/build/numbers/arithmetic.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

using build::OpName;

/// Operations whose operator is called otherwise.
constexpr std::array kOperators = {
    OpName{"logical_not", "not"}, OpName{"logical_and", "and"}, OpName{"logical_or", "or"},
    OpName{"logical_xor", "xor"}, OpName{"maximum", "max"},     OpName{"minimum", "min"},
    OpName{"real_div", "div"},
};

std::string operator_of(std::string_view op) {
  const OpName* found = build::find_in(kOperators, &OpName::model, op);
  return found == nullptr ? std::string(op) : found->graph;
}

/// A number for each channel of x [N,C,...], as an operand that broadcasts to it.
V along_channels(NodeContext& node, V x, const char* name) {
  const V numbers = node.tensor(name);
  if (node.rank(numbers) == 0 || node.rank(x) < 2) return numbers;
  if (node.rank(numbers) != 1)
    node.invalid("operand " + std::string(name) + " has rank " + std::to_string(node.rank(numbers)));
  ir::SymShape along(node.shape(x).size(), 1);
  along[1] = node.shape(numbers)[0];
  return Compose(node).reshape(numbers, along);
}

/// A real number of the file as one of another such type, which operands that must be known may be made of.
std::optional<Tensor> cast_number(const std::optional<Tensor>& number, DType to) {
  if (!number || number->num_elements() != 1 || !is_float(number->dtype()) || !is_float(to))
    return std::nullopt;
  Tensor made(to, number->shape());
  made.set_element(0, number->element_as_double(0));
  return made;
}

}  // namespace

void convert_unary(NodeContext& node) {
  const V x = node.tensor("x");
  const bool rounds = node.op() == "ceil" || node.op() == "floor" || node.op() == "round";
  if (rounds && !is_float(node.dtype(x))) return node.set_alias("x");
  node.set_output(node.add(operator_of(node.op()), {x}));
}

void convert_square(NodeContext& node) {
  const V x = node.tensor("x");
  node.set_output(Compose(node).mul(x, x));
}

void convert_exp2(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  node.set_output(c.binary("pow", c.number(x, 2), x));
}

// epsilon is added before the function.
void convert_shifted(NodeContext& node) {
  Compose c(node);
  const bool is_log = node.op() == "log", is_root = node.op() == "rsqrt";
  const double otherwise = is_log ? 1e-45 : is_root ? 1e-12 : 1e-4;
  const V x = c.plus(node.tensor("x"), node.real("epsilon", otherwise));
  node.set_output(c.unary(is_log ? "log" : is_root ? "rsqrt" : "reciprocal", x));
}

void convert_clip(NodeContext& node) {
  node.set_output(Compose(node).clip(node.tensor("x"), node.real("alpha"), node.real("beta")));
}

void convert_threshold(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  node.set_output(c.binary("max", x, c.number(x, node.real("alpha"))));
}

// The output says the type.
void convert_cast(NodeContext& node) {
  const DataType named = type_named(node.text("dtype"));
  if (named != DataType::kUnused && named != node.output_type(0).dtype)
    node.invalid("dtype is " + std::string(type_name(named)) + ", the output's type " +
                 std::string(type_name(node.output_type(0).dtype)));
  if (const std::optional<Tensor> known = cast_number(node.constant_of("x"), node.output_dtype()))
    return node.set_output(node.graph().add_constant(node.graph().unique_name("constant"), *known));
  node.set_cast(0, node.tensor("x"));
}

void convert_identity(NodeContext& node) { node.set_alias("x"); }

void convert_binary(NodeContext& node) {
  node.set_output(node.add(operator_of(node.op()), {node.tensor("x"), node.tensor("y")}));
}

void convert_not_equal(NodeContext& node) {
  Compose c(node);
  node.set_output(c.unary("not", c.binary("equal", node.tensor("x"), node.tensor("y"))));
}

void convert_floor_div(NodeContext& node) {
  build::ChannelsLast none;
  node.set_output(build::floor_div(node, none, node.tensor("x"), node.tensor("y")));
}

void convert_mod(NodeContext& node) {
  build::ChannelsLast none;
  node.set_output(build::floor_mod(node, none, node.tensor("x"), node.tensor("y")));
}

void convert_select(NodeContext& node) {
  node.set_output(Compose(node).where(node.tensor("cond"), node.tensor("a"), node.tensor("b")));
}

void convert_relu6(NodeContext& node) { node.set_output(Compose(node).clip(node.tensor("x"), 0, 6)); }

// elu and leaky_relu.
void convert_relu_of_slope(NodeContext& node) {
  node.set_output(node.add(std::string(node.op()), {node.tensor("x")}, {{"alpha", node.real("alpha")}}));
}

void convert_prelu(NodeContext& node) {
  const V x = node.tensor("x");
  node.set_output(Compose(node).binary("prelu", x, along_channels(node, x, "alpha")));
}

void convert_gelu(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  const std::string mode = node.text("mode", "EXACT");
  if (mode == "SIGMOID_APPROXIMATION")
    return node.set_output(c.mul(x, c.unary("sigmoid", c.times(x, 1.702))));
  if (mode != "EXACT" && mode != "TANH_APPROXIMATION") node.invalid("mode is \"" + mode + "\"");
  node.set_output(node.add("gelu", {x}, {{"approximate", std::string(mode == "EXACT" ? "none" : "tanh")}}));
}

void convert_sigmoid_hard(NodeContext& node) {
  const ir::Attrs attrs{{"alpha", node.real("alpha")}, {"beta", node.real("beta")}};
  node.set_output(node.add("hard_sigmoid", {node.tensor("x")}, attrs));
}

void convert_silu(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  node.set_output(c.mul(x, c.unary("sigmoid", x)));
}

void convert_softplus_parametric(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  const V y = c.unary("softplus", c.mul(x, along_channels(node, x, "beta")));
  node.set_output(c.mul(y, along_channels(node, x, "alpha")));
}

void convert_scaled_tanh(NodeContext& node) {
  Compose c(node);
  const V y = c.unary("tanh", c.times(node.tensor("x"), node.real("beta")));
  node.set_output(c.times(y, node.real("alpha")));
}

void convert_clamped_relu(NodeContext& node) {
  Compose c(node);
  const V y = node.add("leaky_relu", {node.tensor("x")}, {{"alpha", node.real("alpha")}});
  node.set_output(c.binary("min", y, c.number(y, node.real("beta"))));
}

void convert_linear_activation(NodeContext& node) {
  Compose c(node);
  node.set_output(c.plus(c.times(node.tensor("x"), node.real("alpha")), node.real("beta")));
}

void convert_thresholded_relu(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  const V is_less = c.binary("less", x, c.number(x, node.real("alpha")));
  node.set_output(c.where(is_less, c.number(x, 0), x));
}

void convert_softmax(NodeContext& node) {
  const V x = node.tensor("x");
  node.set_output(node.add("softmax", {x}, {{"axis", node.axis("axis", node.rank(x), -1)}}));
}

}  // namespace tensormill::frontend::coreml
