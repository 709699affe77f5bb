// Operators of keras.ops that stand between layers, on each element alone or along axes.
#include <algorithm>
#include <array>

#include "compiler/build/numbers/einsum.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/keras/converters/operands.h"

namespace tensormill::frontend::keras {

namespace {

using build::OpName;

constexpr std::array kBinary = {OpName{"Add", "add"},
                                OpName{"Subtract", "sub"},
                                OpName{"Multiply", "mul"},
                                OpName{"Divide", "div"},
                                OpName{"TrueDivide", "div"},
                                OpName{"FloorDivide", "div"},
                                OpName{"Power", "pow"},
                                OpName{"Maximum", "max"},
                                OpName{"Minimum", "min"},
                                OpName{"Greater", "greater"},
                                OpName{"GreaterEqual", "greater_equal"},
                                OpName{"Less", "less"},
                                OpName{"LessEqual", "less_equal"},
                                OpName{"Equal", "equal"},
                                OpName{"NotEqual", "equal"},
                                OpName{"LogicalAnd", "and"},
                                OpName{"LogicalOr", "or"}};

constexpr std::array kUnaryNames = {OpName{"Negative", "neg"}, OpName{"Absolute", "abs"},
                                    OpName{"Abs", "abs"},      OpName{"Exp", "exp"},
                                    OpName{"Log", "log"},      OpName{"Sqrt", "sqrt"},
                                    OpName{"Rsqrt", "rsqrt"},  OpName{"Floor", "floor"},
                                    OpName{"Ceil", "ceil"},    OpName{"Round", "round"},
                                    OpName{"Sign", "sign"},    OpName{"Sin", "sin"},
                                    OpName{"Cos", "cos"},      OpName{"Tan", "tan"},
                                    OpName{"Erf", "erf"},      OpName{"Reciprocal", "reciprocal"}};

/// As activations are called.
constexpr std::array kActivations = {OpName{"Relu", "relu"},
                                     OpName{"Relu6", "relu6"},
                                     OpName{"Sigmoid", "sigmoid"},
                                     OpName{"Tanh", "tanh"},
                                     OpName{"Silu", "silu"},
                                     OpName{"Softplus", "softplus"},
                                     OpName{"Softsign", "softsign"},
                                     OpName{"Selu", "selu"},
                                     OpName{"HardSigmoid", "hard_sigmoid"},
                                     OpName{"HardSilu", "hard_silu"},
                                     OpName{"HardTanh", "hard_tanh"},
                                     OpName{"LogSigmoid", "log_sigmoid"},
                                     OpName{"TanhShrink", "tanh_shrink"}};

/// `axis`: a number, a list, or nothing for all axes.
ir::Ints axes_of_operator(const LayerContext& context, int64_t rank) {
  const LayerConfig& config = context.config();
  std::vector<int64_t> axes;
  if (!config.has("axis")) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
    return axes;
  }
  for (const int64_t axis : config.list("axis")) axes.push_back(context.normalize_axis(axis, rank));
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) context.invalid("axis names an axis twice");
  return axes;
}

}  // namespace

void convert_binary_operation(LayerContext& context) {
  const std::string_view name = context.class_name();
  std::vector<V> operands = fitted_operands(context, 2, name == "Divide" || name == "TrueDivide");
  if (name == "LogicalAnd" || name == "LogicalOr")
    for (V& operand : operands) operand = context.cast(operand, DType::kBool);
  if (name == "FloorDivide" && !is_float(context.type(operands[0]).dtype))
    context.unsupported("operands", "integers are not implemented");
  V y = context.elementwise(build::graph_name(context, kBinary, context.class_name()), operands);
  if (name == "NotEqual") y = context.elementwise("not", {y});
  if (name == "FloorDivide") y = context.elementwise("floor", {y});
  context.set_output(y);
}

void convert_unary_operation(LayerContext& context) {
  if (context.config().integer("decimals", 0) != 0)
    context.unsupported("option decimals", "it is not implemented");
  context.set_output(
      context.elementwise(build::graph_name(context, kUnaryNames, context.class_name()), {context.raw(0)}));
}

void convert_square(LayerContext& context) {
  context.set_output(context.elementwise("mul", {context.raw(0), context.raw(0)}));
}

void convert_logical_not(LayerContext& context) {
  context.set_output(context.elementwise("not", {context.cast(context.raw(0), DType::kBool)}));
}

void convert_activation_operation(LayerContext& context) {
  context.set_output(
      activated(context, build::graph_name(context, kActivations, context.class_name()), context.raw(0)));
}

void convert_sloped_operation(LayerContext& context) {
  const LayerConfig& config = context.config();
  const V x = context.raw(0);
  if (context.class_name() == "LeakyRelu")
    return context.set_output(
        context.elementwise("leaky_relu", {x}, {{"alpha", config.number("negative_slope", 0.2)}}));
  if (context.class_name() == "Elu")
    return context.set_output(context.elementwise("elu", {x}, {{"alpha", config.number("alpha", 1)}}));
  const std::string form = config.flag("approximate", true) ? "tanh" : "none";
  context.set_output(context.elementwise("gelu", {x}, {{"approximate", form}}));
}

void convert_softmax_operation(LayerContext& context) {
  const char* op = context.class_name() == "Softmax" ? "softmax" : "log_softmax";
  context.set_output(soft_max(context, op, context.raw(0), context.config().integer("axis", -1)));
}

void convert_clip(LayerContext& context) {
  const LayerConfig& config = context.config();
  const double low = config.number("x_min", 0), high = config.number("x_max", 0);
  const V x = context.raw(0);
  context.set_output(
      context.elementwise("clip", {x, context.scalar_like(x, low), context.scalar_like(x, high)}));
}

void convert_where(LayerContext& context) {
  if (context.argument("x2", 2).is_null())
    context.unsupported("argument x2", "places of what is true are not implemented");
  std::vector<V> values = {operand_of(context, context.argument("x1", 1), ir::kAbsent),
                           operand_of(context, context.argument("x2", 2), ir::kAbsent)};
  fit_dtypes(context, values, {context.argument("x1", 1), context.argument("x2", 2)}, false);
  const V condition =
      context.cast(operand_of(context, context.argument("condition", 0), ir::kAbsent), DType::kBool);
  context.set_output(context.elementwise("where", {condition, values[0], values[1]}));
}

void convert_cast_operation(LayerContext& context) {
  const std::optional<DType> to = dtype_from_long_name(policy_name(context.config().at("dtype")));
  if (!to) context.unsupported("option dtype", "it is no type of tensors");
  context.set_output(context.cast(context.raw(0), *to));
}

void convert_reduction(LayerContext& context) {
  static constexpr std::array kNames = {OpName{"Mean", "reduce_mean"}, OpName{"Sum", "reduce_sum"},
                                        OpName{"Max", "reduce_max"},   OpName{"Min", "reduce_min"},
                                        OpName{"Prod", "reduce_prod"}, OpName{"Var", "reduce_mean"},
                                        OpName{"Std", "reduce_mean"},  OpName{"Norm", "reduce_sum"}};
  const LayerConfig& config = context.config();
  const V x = context.raw(0);
  const ir::Ints axes = axes_of_operator(context, context.rank(x));
  const bool keeps = config.flag("keepdims", false);
  Compose c(context);
  const std::string_view name = context.class_name();
  if (!is_float(c.dtype(x)) && name != "Sum" && name != "Max" && name != "Min")
    context.unsupported("input", "integers are not implemented");
  if (name == "Norm") {
    if (config.has("ord") && config.at("ord") != 2)
      context.unsupported("option ord", "another norm than 2 is not implemented");
    if (config.has("ord") && axes.size() != 1)
      context.unsupported("option axis", "norms of matrices are not implemented");
    return context.set_output(c.unary("sqrt", c.reduce("reduce_sum", c.mul(x, x), axes, keeps)));
  }
  if (name != "Var" && name != "Std")
    return context.set_output(
        c.reduce(build::graph_name(context, kNames, context.class_name()), x, axes, keeps));
  const V centered = c.sub(x, c.reduce("reduce_mean", x, axes, true));
  const V variance = c.reduce("reduce_mean", c.mul(centered, centered), axes, keeps);
  context.set_output(name == "Std" ? c.unary("sqrt", variance) : variance);
}

void convert_any(LayerContext& context) {
  Compose c(context);
  const V x = c.cast(c.cast(context.raw(0), DType::kBool), DType::kFloat32);
  const bool keeps = context.config().flag("keepdims", false);
  const V most = c.reduce("reduce_max", x, axes_of_operator(context, context.rank(x)), keeps);
  context.set_output(c.binary("greater", most, c.number(most, 0)));
}

void convert_arg_reduction(LayerContext& context) {
  const LayerConfig& config = context.config();
  V x = context.raw(0);
  Compose c(context);
  if (!config.has("axis")) x = c.reshape(x, {num_elements(c.shape(x))});
  const int64_t axis =
      config.has("axis") ? context.normalize_axis(config.integer("axis"), context.rank(x)) : 0;
  const bool keeps = config.flag("keepdims", false);
  if (context.class_name() == "Argmin") x = c.unary("neg", x);
  context.set_output(c.cast(c.arg_max(x, axis, keeps), DType::kInt32));
}

void convert_normalize(LayerContext& context) {
  const LayerConfig& config = context.config();
  const V x = context.raw(0);
  if (config.integer("order", 2) != 2)
    context.unsupported("option order", "another norm than 2 is not implemented");
  const double epsilon = config.number("epsilon", 1e-10);
  Compose c(context);
  const V square = c.reduce("reduce_sum", c.mul(x, x), axes_of_operator(context, context.rank(x)), true);
  context.set_output(
      c.mul(x, c.unary("rsqrt", c.binary("max", square, c.number(square, epsilon * epsilon)))));
}

void convert_cumsum(LayerContext& context) {
  if (!context.config().has("axis")) context.unsupported("option axis", "a sum of all is not implemented");
  const V x = context.raw(0);
  const int64_t axis = context.normalize_axis(context.config().integer("axis"), context.rank(x));
  context.set_output(context.add("cumsum", {x}, {{"axis", axis}}));
}

void convert_matmul(LayerContext& context) {
  const std::vector<V> operands = fitted_operands(context, 2, false);
  if (context.rank(operands[0]) < 2 || context.rank(operands[1]) < 2)
    context.unsupported("operands", "rows alone are not implemented");
  context.set_output(Compose(context).matmul(operands[0], operands[1]));
}

void convert_einsum(LayerContext& context) {
  const std::string equation = context.config().text("subscripts", "");
  const auto count = static_cast<size_t>(std::count(equation.begin(), equation.end(), ',')) + 1;
  context.set_output(build::einsum(context, equation, fitted_operands(context, count, false)));
}

void convert_filled_like(LayerContext& context) {
  const std::string_view name = context.class_name();
  const V x = context.raw(0);
  Compose c(context);
  double value = name == "OnesLike" ? 1 : 0;
  if (name == "FullLike") {
    const Json& given = context.argument("fill_value", 1);
    if (!given.is_number())
      context.unsupported("argument fill_value", "what is no number is not implemented");
    value = given.get<double>();
  }
  context.set_output(c.filled(c.dtype(x), c.shape(x), value));
}

}  // namespace tensormill::frontend::keras
