// Operators on each element alone.
#include <array>

#include "compiler/build/numbers/arithmetic.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

using build::OpName;

Activation binary_activation(const NodeContext& node) {
  const std::string_view op = node.op();
  if (op == "ADD") return node.options<AddOptions>().fused_activation_function;
  if (op == "SUB") return node.options<SubOptions>().fused_activation_function;
  if (op == "MUL") return node.options<MulOptions>().fused_activation_function;
  if (op == "DIV") return node.options<DivOptions>().fused_activation_function;
  return Activation::kNone;
}

}  // namespace

void convert_binary(NodeContext& node) {
  static constexpr std::array<OpName, 7> kNames = {{{"ADD", "add"},
                                                    {"SUB", "sub"},
                                                    {"MUL", "mul"},
                                                    {"DIV", "div"},
                                                    {"MAXIMUM", "max"},
                                                    {"MINIMUM", "min"},
                                                    {"POW", "pow"}}};
  const V result = node.elementwise(build::graph_name(node, kNames, node.op()), {node.real(0), node.real(1)});
  node.set_real(0, result, binary_activation(node));
}

void convert_stablehlo_binary(NodeContext& node) {
  static constexpr std::array<OpName, 5> kNames = {{{"STABLEHLO_ADD", "add"},
                                                    {"STABLEHLO_MULTIPLY", "mul"},
                                                    {"STABLEHLO_MAXIMUM", "max"},
                                                    {"STABLEHLO_MINIMUM", "min"},
                                                    {"STABLEHLO_AND", "and"}}};
  node.set_real(0,
                node.elementwise(build::graph_name(node, kNames, node.op()), {node.real(0), node.real(1)}));
}

void convert_add_n(NodeContext& node) {
  V sum = node.real(0);
  for (size_t i = 1; i < node.num_inputs(); ++i) sum = node.elementwise("add", {sum, node.real(i)});
  node.set_real(0, sum);
}

void convert_comparison(NodeContext& node) {
  static constexpr std::array<OpName, 6> kNames = {{{"LESS", "less"},
                                                    {"LESS_EQUAL", "less_equal"},
                                                    {"GREATER", "greater"},
                                                    {"GREATER_EQUAL", "greater_equal"},
                                                    {"EQUAL", "equal"},
                                                    {"NOT_EQUAL", "equal"}}};
  V result = node.elementwise(build::graph_name(node, kNames, node.op()), {node.real(0), node.real(1)});
  if (node.op() == "NOT_EQUAL") result = node.elementwise("not", {result});
  node.set_stored(0, result);
}

void convert_logical(NodeContext& node) {
  const char* op = node.op() == "LOGICAL_AND" ? "and" : "or";
  node.set_stored(0, node.elementwise(op, {node.stored(0), node.stored(1)}));
}

void convert_logical_not(NodeContext& node) { node.set_stored(0, node.elementwise("not", {node.stored(0)})); }

void convert_squared_difference(NodeContext& node) {
  const V difference = node.elementwise("sub", {node.real(0), node.real(1)});
  node.set_real(0, node.elementwise("mul", {difference, difference}));
}

void convert_floor_mod(NodeContext& node) {
  node.set_real(0, build::floor_mod(node, node.maps(), node.real(0), node.real(1)));
}

void convert_floor_div(NodeContext& node) {
  node.set_real(0, build::floor_div(node, node.maps(), node.real(0), node.real(1)));
}

void convert_unary(NodeContext& node) {
  static constexpr std::array<OpName, 17> kNames = {{{"RELU", "relu"},
                                                     {"LOGISTIC", "sigmoid"},
                                                     {"TANH", "tanh"},
                                                     {"EXP", "exp"},
                                                     {"LOG", "log"},
                                                     {"SQRT", "sqrt"},
                                                     {"RSQRT", "rsqrt"},
                                                     {"ABS", "abs"},
                                                     {"NEG", "neg"},
                                                     {"SIN", "sin"},
                                                     {"COS", "cos"},
                                                     {"FLOOR", "floor"},
                                                     {"CEIL", "ceil"},
                                                     {"ROUND", "round"},
                                                     {"ELU", "elu"},
                                                     {"HARD_SWISH", "hard_swish"},
                                                     {"SIGN", "sign"}}};
  node.set_real(0, node.elementwise(build::graph_name(node, kNames, node.op()), {node.real(0)}));
}

void convert_square(NodeContext& node) {
  const V x = node.real(0);
  node.set_real(0, node.elementwise("mul", {x, x}));
}

void convert_clipped(NodeContext& node) {
  const V x = node.real(0);
  const double low = node.op() == "RELU_N1_TO_1" ? -1 : 0, high = node.op() == "RELU6" ? 6 : 1;
  node.set_real(0, node.elementwise("clip", {x, node.scalar_like(x, low), node.scalar_like(x, high)}));
}

void convert_leaky_relu(NodeContext& node) {
  const auto alpha = static_cast<double>(node.options<LeakyReluOptions>().alpha);
  node.set_real(0, node.elementwise("leaky_relu", {node.real(0)}, {{"alpha", alpha}}));
}

void convert_prelu(NodeContext& node) {
  node.set_real(0, node.elementwise("prelu", {node.real(0), node.real(1)}));
}

void convert_gelu(NodeContext& node) {
  const std::string form = node.options<GeluOptions>().approximate ? "tanh" : "none";
  node.set_real(0, node.elementwise("gelu", {node.real(0)}, {{"approximate", form}}));
}

void convert_cast(NodeContext& node) {
  const DType to = node.output_dtype(0);
  const V x = node.stored(0);
  node.set_stored(0, node.type(x).dtype == to ? x : node.elementwise("cast", {x}, {{"to", to}}));
}

// QUANTIZE of real numbers, or of integers of another scale; DEQUANTIZE also of float16.
void convert_requantize(NodeContext& node) {
  const V x = node.real(0);
  const DType to = is_quantized(node.output_tensor(0)) ? DType::kFloat32 : node.output_dtype(0);
  node.set_real(0, node.type(x).dtype == to ? x : node.elementwise("cast", {x}, {{"to", to}}));
}

// A sparse constant is dense as soon as it is read.
void convert_densify(NodeContext& node) { node.set_stored(0, node.stored(0)); }

// The condition may be a row, one a part of the first axis.
void convert_select(NodeContext& node) {
  V condition = node.stored(0);
  const V x = node.real(1);
  const size_t rank = node.shape(x).size();
  if (node.rank(condition) == 1 && rank > 1) {
    ir::SymShape along(rank, 1);
    along[0] = node.shape(condition)[0];
    condition = node.reshape(condition, along);
  }
  node.set_real(0, node.elementwise("where", {condition, x, node.real(2)}));
}

void convert_select_v2(NodeContext& node) {
  node.set_real(0, node.elementwise("where", {node.stored(0), node.real(1), node.real(2)}));
}

}  // namespace tensormill::frontend::tflite
