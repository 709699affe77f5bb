// Operators on each element of one tensor.
#include <array>
#include <limits>

#include "compiler/build/numbers/special.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

constexpr double kLn2 = std::numbers::ln2, kPi = std::numbers::pi;

using build::OpName;
/// Functions of real numbers that the graph has, too.
constexpr std::array kReal = {OpName{"sqrt", "sqrt"},
                              OpName{"rsqrt", "rsqrt"},
                              OpName{"reciprocal", "reciprocal"},
                              OpName{"exp", "exp"},
                              OpName{"log", "log"},
                              OpName{"expm1", "expm1"},
                              OpName{"log1p", "log1p"},
                              OpName{"tanh", "tanh"},
                              OpName{"sigmoid", "sigmoid"},
                              OpName{"erf", "erf"},
                              OpName{"erfc", "erfc"},
                              OpName{"sin", "sin"},
                              OpName{"cos", "cos"},
                              OpName{"tan", "tan"},
                              OpName{"asin", "asin"},
                              OpName{"acos", "acos"},
                              OpName{"atan", "atan"},
                              OpName{"sinh", "sinh"},
                              OpName{"cosh", "cosh"},
                              OpName{"asinh", "asinh"},
                              OpName{"acosh", "acosh"},
                              OpName{"atanh", "atanh"},
                              OpName{"mish", "mish"},
                              OpName{"hardswish", "hard_swish"},
                              OpName{"arccos", "acos"},
                              OpName{"arccosh", "acosh"},
                              OpName{"arcsin", "asin"},
                              OpName{"arcsinh", "asinh"},
                              OpName{"arctan", "atan"},
                              OpName{"arctanh", "atanh"},
                              OpName{"special_expit", "sigmoid"},
                              OpName{"special_erf", "erf"},
                              OpName{"special_erfc", "erfc"},
                              OpName{"special_expm1", "expm1"},
                              OpName{"special_log1p", "log1p"}};
/// Those of any number, whose result has the operand's type.
constexpr std::array kAny = {OpName{"abs", "abs"},      OpName{"absolute", "abs"}, OpName{"neg", "neg"},
                             OpName{"negative", "neg"}, OpName{"sign", "sign"},    OpName{"sgn", "sign"},
                             OpName{"relu", "relu"}};
constexpr std::array kRounding = {OpName{"floor", "floor"}, OpName{"ceil", "ceil"}};

V clamped(NodeContext& node, V x, double low, double high) { return Compose(node).clip(x, low, high); }

/// Those that are made of others.
V composed(NodeContext& node, std::string_view op, V x) {
  Compose c(node);
  if (op == "log2") return c.times(c.unary("log", x), 1 / kLn2);
  if (op == "log10") return c.times(c.unary("log", x), 1 / std::numbers::ln10);
  if (op == "exp2" || op == "special_exp2") return c.binary("pow", c.number(x, 2), x);
  if (op == "special_ndtr") return c.times(c.unary("erfc", c.times(x, -std::numbers::sqrt2 / 2)), 0.5);
  if (op == "deg2rad") return c.times(x, kPi / 180);
  if (op == "rad2deg") return c.times(x, 180 / kPi);
  if (op == "silu") return c.mul(x, c.unary("sigmoid", x));
  if (op == "hardsigmoid") return node.add("hard_sigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
  if (op == "selu") return node.add("selu", {x});
  if (op == "log_sigmoid") return c.unary("neg", c.unary("softplus", c.unary("neg", x)));
  if (op == "sinc" || op == "special_sinc") {
    const V turned = c.times(x, kPi);
    return c.where(is_zero(node, x), c.number(x, 1), c.div(c.unary("sin", turned), turned));
  }
  if (op == "special_entr") {
    const V below = c.number(x, -std::numeric_limits<double>::infinity());
    const V value = c.unary("neg", c.mul(x, c.unary("log", x)));
    return c.where(is_zero(node, x), c.number(x, 0), c.where(is_negative(node, x), below, value));
  }
  if (op == "lgamma" || op == "special_gammaln") return build::log_gamma(node, x);
  if (op == "digamma" || op == "special_digamma" || op == "special_psi") return build::digamma(node, x);
  if (op == "erfinv" || op == "special_erfinv") return build::erf_inverse(node, x);
  if (op == "special_ndtri") return build::normal_quantile(node, x);
  node.invalid("it has a converter of other operators");
}

}  // namespace

void convert_real_unary(NodeContext& node) {
  node.set_output(0,
                  node.add(build::graph_name(node, kReal, node.op()), {floated(node, node.tensor("self"))}));
}

void convert_any_unary(NodeContext& node) {
  const V x = node.tensor("self");
  const bool is_bool = node.dtype(x) == DType::kBool;
  if (is_bool && node.op().starts_with("neg")) node.invalid("of truth values");
  node.set_output(0, is_bool ? x : node.add(build::graph_name(node, kAny, node.op()), {x}));
}

void convert_composed_unary(NodeContext& node) {
  const V x = floated(node, node.tensor("self"));
  node.set_output(0, Compose(node).cast(composed(node, node.op(), widened(node, x)), node.dtype(x)));
}

// Beside it e^-|x|, which its gradient reads.
void convert_log_sigmoid_forward(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self"), x = widened(node, given);
  node.set_output(0, c.cast(composed(node, "log_sigmoid", x), node.dtype(given)));
  node.set_output(1, c.cast(c.unary("exp", c.unary("neg", c.unary("abs", x))), node.dtype(given)));
}

// Of any numbers, whose type it keeps.
void convert_relu6(NodeContext& node) { node.set_output(0, clamped(node, node.tensor("self"), 0, 6)); }

void convert_rounding(NodeContext& node) {
  const V x = node.tensor("self");
  if (!is_float(node.dtype(x))) return node.set_output(0, node.add("identity", {x}));
  if (node.op() == "trunc" || node.op() == "fix" || node.op() == "frac") {
    Compose c(node);
    const V whole = c.where(is_negative(node, x), c.unary("ceil", x), c.unary("floor", x));
    return node.set_output(0, node.op() == "frac" ? c.sub(x, whole) : whole);
  }
  node.set_output(0, node.add(build::graph_name(node, kRounding, node.op()), {x}));
}

// With decimals it rounds x * 10^decimals.
void convert_round(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const int64_t decimals = takes(node, "decimals") ? node.integer("decimals") : 0;
  if (!is_float(node.dtype(x))) return node.set_output(0, node.add("identity", {x}));
  if (decimals == 0) return node.set_output(0, c.unary("round", x));
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  const V wide = widened(node, x), factor = c.number(wide, scale);
  const V whole = c.unary("round", decimals > 0 ? c.mul(wide, factor) : c.div(wide, factor));
  node.set_output(0, c.cast(decimals > 0 ? c.div(whole, factor) : c.mul(whole, factor), node.dtype(x)));
}

void convert_square(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  node.set_output(0, c.mul(node.as_output(x), node.as_output(x)));
}

void convert_positive(NodeContext& node) { node.set_alias("self"); }

void convert_logical_not(NodeContext& node) {
  node.set_output(0, node.as_output(negated(node, to_bool(node, node.tensor("self")))));
}

void convert_bitwise_not(NodeContext& node) { node.set_output(0, negated(node, node.tensor("self"))); }

void convert_float_test(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  if (node.op() == "isreal") return node.set_output(0, c.filled(DType::kBool, node.shape(x), 1));
  const V real = is_float(node.dtype(x)) ? x : c.cast(x, DType::kFloat32);
  const std::string& op = node.op();
  const double infinity = std::numeric_limits<double>::infinity();
  if (op == "isnan") return node.set_output(0, node.add("is_nan", {real}));
  if (op == "isinf") return node.set_output(0, node.add("is_inf", {real}));
  if (op == "isposinf") return node.set_output(0, c.binary("equal", real, c.number(real, infinity)));
  if (op == "isneginf") return node.set_output(0, c.binary("equal", real, c.number(real, -infinity)));
  if (op == "isfinite")
    return node.set_output(0, c.binary("less", c.unary("abs", real), c.number(real, infinity)));
  // signbit: that of -0, too.
  const V is_below = is_negative(node, c.unary("reciprocal", real));
  node.set_output(0, c.where(is_zero(node, real), is_below, is_negative(node, real)));
}

void convert_nan_to_num(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  if (!is_float(node.dtype(x))) return node.set_output(0, node.add("identity", {x}));
  const DType dtype = node.dtype(x);
  const double most = dtype == DType::kFloat16    ? 65504
                      : dtype == DType::kBFloat16 ? 0x1.FEp127
                      : dtype == DType::kFloat64  ? std::numeric_limits<double>::max()
                                                  : static_cast<double>(std::numeric_limits<float>::max());
  const double nan = node.has("nan") ? node.real("nan") : 0;
  const double high = node.has("posinf") ? node.real("posinf") : most;
  const double low = node.has("neginf") ? node.real("neginf") : -most;
  const double infinity = std::numeric_limits<double>::infinity();
  V y = c.where(node.add("is_nan", {x}), c.number(x, nan), x);
  y = c.where(c.binary("equal", x, c.number(x, infinity)), c.number(x, high), y);
  node.set_output(0, c.where(c.binary("equal", x, c.number(x, -infinity)), c.number(x, low), y));
}

void convert_logit(NodeContext& node) {
  Compose c(node);
  V x = floated(node, node.tensor("self"));
  if (node.has("eps")) x = clamped(node, x, node.real("eps"), 1 - node.real("eps"));
  node.set_output(0, c.unary("log", c.div(x, c.sub(c.number(x, 1), x))));
}

namespace {

/// One operator of the graph, computed as torch computes elements.
void set_of_self(NodeContext& node, const char* op, ir::Attrs attrs) {
  const V x = node.tensor("self");
  node.set_output(0, Compose(node).cast(node.add(op, {widened(node, x)}, std::move(attrs)), node.dtype(x)));
}

}  // namespace

void convert_gelu(NodeContext& node) {
  set_of_self(node, "gelu", {{"approximate", node.text("approximate")}});
}

void convert_leaky_relu(NodeContext& node) {
  set_of_self(node, "leaky_relu", {{"alpha", node.real("negative_slope")}});
}

// max(0, x) * scale + min(0, alpha * (e^(x * input_scale) - 1)) * scale
void convert_elu(NodeContext& node) {
  Compose c(node);
  const DType dtype = node.dtype(node.tensor("self"));
  const V x = widened(node, node.tensor("self"));
  const double alpha = node.real("alpha");
  const double scale = node.op() == "elu" ? node.real("scale") : 1;
  const double input_scale = node.op() == "elu" ? node.real("input_scale") : 1 / alpha;
  const V inner = input_scale == 1 ? x : c.times(x, input_scale);
  const V low = node.add("elu", {inner}, {{"alpha", alpha}});
  const V y = c.where(is_negative(node, x), low, x);
  node.set_output(0, c.cast(scale == 1 ? y : c.times(y, scale), dtype));
}

void convert_hardtanh(NodeContext& node) {
  node.set_output(0, clamped(node, node.tensor("self"), node.real("min_val"), node.real("max_val")));
}

void convert_softplus(NodeContext& node) {
  Compose c(node);
  const DType dtype = node.dtype(node.tensor("self"));
  const V x = widened(node, node.tensor("self"));
  const double beta = node.real("beta"), threshold = node.real("threshold");
  const V scaled = beta == 1 ? x : c.times(x, beta);
  V y = c.unary("softplus", scaled);
  if (beta != 1) y = c.div(y, c.number(y, beta));
  y = c.where(c.binary("greater", scaled, c.number(x, threshold)), x, y);
  node.set_output(0, c.cast(y, dtype));
}

void convert_shrink(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const double lambda = node.real("lambd");
  const V zero = c.number(x, 0);
  if (node.op() == "hardshrink") {
    const V is_out = c.binary("less_equal", c.unary("abs", x), c.number(x, lambda));
    return node.set_output(0, c.where(is_out, zero, x));
  }
  const V low = c.where(c.binary("less", x, c.number(x, -lambda)), c.plus(x, lambda), zero);
  node.set_output(0, c.where(c.binary("greater", x, c.number(x, lambda)), c.minus(x, lambda), low));
}

void convert_threshold(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const V value = node.as(node.operand("value"), node.dtype(x));
  const V bound = node.as(node.operand("threshold"), node.dtype(x));
  node.set_output(0, c.where(c.binary("less_equal", x, bound), value, x));
}

// The first half of an axis times the sigmoid of the second.
void convert_glu(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const int64_t axis = node.axis("dim", node.rank(x));
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  if (!ir::demand_divisible(extent, 2)) node.invalid("an axis of " + to_string(extent) + " has no halves");
  const ir::SymInt half = floordiv(extent, 2);
  node.set_output(0, c.mul(c.slice(x, axis, 0, half), c.unary("sigmoid", c.slice(x, axis, half, half))));
}

// One weight, or one a channel, which is axis 1.
void convert_prelu(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self"), weight = node.tensor("weight");
  ir::SymShape along(node.shape(x).size(), 1);
  const ir::SymInt count = num_elements(node.shape(weight));
  if (along.size() > 1) {
    along[1] = count;
  } else if (along.size() == 1) {
    along[0] = count;
  }
  const V slope = node.rank(weight) == node.rank(x) ? weight : c.reshape(weight, along);
  node.set_output(0, c.where(is_negative(node, x), c.mul(x, slope), x));
}

void convert_rrelu(NodeContext& node) {
  if (node.flag("training")) node.unsupported("training", "random slopes are not implemented");
  const double slope = (node.real("lower") + node.real("upper")) / 2;
  set_of_self(node, "leaky_relu", {{"alpha", slope}});
}

// Either bound may be missing, a number or a tensor.
void convert_clamp(NodeContext& node) {
  Compose c(node);
  const std::string& op = node.op();
  const char* low = op == "clamp_max" ? nullptr : "min";
  const char* high = op == "clamp_min" ? nullptr : "max";
  const DType made = node.output_dtype(), dtype = made == DType::kBool ? DType::kUInt8 : made;
  V x = c.cast(node.tensor("self"), dtype);
  if (low != nullptr && node.has(low)) x = c.binary("max", x, node.as(node.operand(low), dtype));
  if (high != nullptr && node.has(high)) x = c.binary("min", x, node.as(node.operand(high), dtype));
  node.set_output(0, c.cast(x, made));
}

}  // namespace tensormill::frontend::pytorch
