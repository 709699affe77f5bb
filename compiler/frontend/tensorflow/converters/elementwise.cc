// Operators on each element alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/build/numbers/arithmetic.h"
#include "compiler/build/numbers/special.h"
#include "compiler/build/rows.h"
#include "compiler/build/text/text_operands.h"
#include "compiler/frontend/tensorflow/node_context.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

namespace {

using build::OpName;

/// The operator on elements that are computed where the map is.
V made(NodeContext& node, const char* op, V x) { return node.elementwise(op, {x}); }
V number(NodeContext& node, V like, double value) { return node.scalar_like(like, value); }
V selected(NodeContext& node, V condition, V x, V y) { return node.elementwise("where", {condition, x, y}); }
V is_zero(NodeContext& node, V x) { return node.binary("equal", x, number(node, x, 0)); }

}  // namespace

void convert_unary(NodeContext& node) {
  static constexpr std::array<OpName, 36> kNames = {
      {{"Abs", "abs"},      {"Neg", "neg"},           {"Sign", "sign"},         {"Relu", "relu"},
       {"Sqrt", "sqrt"},    {"Rsqrt", "rsqrt"},       {"Floor", "floor"},       {"Ceil", "ceil"},
       {"Exp", "exp"},      {"Log", "log"},           {"Tanh", "tanh"},         {"Sigmoid", "sigmoid"},
       {"Erf", "erf"},      {"Sin", "sin"},           {"Cos", "cos"},           {"Tan", "tan"},
       {"Asin", "asin"},    {"Acos", "acos"},         {"Atan", "atan"},         {"Sinh", "sinh"},
       {"Cosh", "cosh"},    {"Asinh", "asinh"},       {"Acosh", "acosh"},       {"Atanh", "atanh"},
       {"Selu", "selu"},    {"Softplus", "softplus"}, {"Softsign", "softsign"}, {"IsNan", "is_nan"},
       {"IsInf", "is_inf"}, {"LogicalNot", "not"},    {"Invert", "not"},        {"Rint", "round"},
       {"Elu", "elu"},      {"Expm1", "expm1"},       {"Log1p", "log1p"},       {"Erfc", "erfc"}}};
  node.set_output(0, made(node, build::graph_name(node, kNames, node.op()), node.input(0)));
}

void convert_special(NodeContext& node) {
  const V x = node.input(0);
  if (!is_float(node.dtype(x))) node.invalid("operands are no real numbers");
  node.set_output(0, node.pointwise(x, [&](V each) {
    if (node.op() == "Lgamma") return build::log_gamma(node, each);
    if (node.op() == "Erfinv") return build::erf_inverse(node, each);
    if (node.op() == "Ndtri") return build::normal_quantile(node, each);
    // TensorFlow's kernel has no side of 0 for it.
    const V nan = number(node, each, std::numeric_limits<double>::quiet_NaN());
    return selected(node, is_zero(node, each), nan, build::digamma(node, each));
  }));
}

void convert_special_step(NodeContext& node) {
  static constexpr std::array<OpName, 17> kNames = {{{"Igamma", "gamma_lower"},
                                                     {"Igammac", "gamma_upper"},
                                                     {"Betainc", "beta"},
                                                     {"Zeta", "zeta"},
                                                     {"Polygamma", "polygamma"},
                                                     {"BesselI0", "bessel_i0"},
                                                     {"BesselI0e", "bessel_i0e"},
                                                     {"BesselI1", "bessel_i1"},
                                                     {"BesselI1e", "bessel_i1e"},
                                                     {"BesselK0", "bessel_k0"},
                                                     {"BesselK0e", "bessel_k0e"},
                                                     {"BesselK1", "bessel_k1"},
                                                     {"BesselK1e", "bessel_k1e"},
                                                     {"BesselJ0", "bessel_j0"},
                                                     {"BesselJ1", "bessel_j1"},
                                                     {"BesselY0", "bessel_y0"},
                                                     {"BesselY1", "bessel_y1"}}};
  const ir::CheckedList<V> operands = node.inputs_from(0);
  if (operands.empty() || !is_float(node.dtype(operands[0]))) node.invalid("operands are no real numbers");
  node.set_output(0, build::special_function(node, build::graph_name(node, kNames, node.op()), operands));
}

// Integers are round.
void convert_round(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(0, is_float(node.dtype(x)) ? made(node, "round", x) : x);
}

void convert_reciprocal(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(0, node.binary("div", number(node, x, 1), x));
}

void convert_square(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(0, node.binary("mul", x, x));
}

void convert_relu6(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(0, node.elementwise("clip", {x, number(node, x, 0), number(node, x, 6)}));
}

// Of TensorFlow.js.
void convert_prelu(NodeContext& node) {
  node.set_output(0, node.binary("prelu", node.input(0), node.input(1)));
}

void convert_leaky_relu(NodeContext& node) {
  const double alpha = node.real("alpha", static_cast<double>(0.2F));
  node.set_output(0, node.elementwise("leaky_relu", {node.input(0)}, {{"alpha", alpha}}));
}

void convert_clip_by_value(NodeContext& node) {
  const V upper = node.binary("min", node.input(0), node.input(2));
  node.set_output(0, node.binary("max", upper, node.input(1)));
}

void convert_is_finite(NodeContext& node) {
  const V x = node.input(0);
  const V infinity = number(node, x, std::numeric_limits<double>::infinity());
  node.set_output(0, node.binary("less", made(node, "abs", x), infinity));
}

void convert_binary(NodeContext& node) {
  static constexpr std::array<OpName, 18> kNames = {{{"Add", "add"},
                                                     {"AddV2", "add"},
                                                     {"Sub", "sub"},
                                                     {"Mul", "mul"},
                                                     {"RealDiv", "div"},
                                                     {"TruncateDiv", "div"},
                                                     {"Maximum", "max"},
                                                     {"Minimum", "min"},
                                                     {"Pow", "pow"},
                                                     {"BitwiseAnd", "and"},
                                                     {"BitwiseOr", "or"},
                                                     {"BitwiseXor", "xor"},
                                                     {"LogicalAnd", "and"},
                                                     {"LogicalOr", "or"},
                                                     {"Less", "less"},
                                                     {"LessEqual", "less_equal"},
                                                     {"Greater", "greater"},
                                                     {"GreaterEqual", "greater_equal"}}};
  node.set_output(0, node.binary(build::graph_name(node, kNames, node.op()), node.input(0), node.input(1)));
}

// Of integers Div is TruncateDiv.
void convert_div(NodeContext& node) { node.set_output(0, node.binary("div", node.input(0), node.input(1))); }

namespace {

/// Whether shapes are known not to broadcast to each other.
bool is_known_apart(NodeContext& node) {
  const ir::SymShape a = build::model_shape(node, node.input(0)), b = build::model_shape(node, node.input(1));
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const ir::SymInt &left = a[a.size() - i], &right = b[b.size() - i];
    if (left.is_constant() && right.is_constant() && !same(left, right) && !same(left, 1) && !same(right, 1))
      return true;
  }
  return false;
}

}  // namespace

void convert_equal(NodeContext& node) {
  // Other extents than known ones have to fit in each run.
  if (!node.flag("incompatible_shape_error", true) && is_known_apart(node))
    return node.set_output(0, Compose(node).filled(DType::kBool, {}, node.op() == "NotEqual" ? 1 : 0));
  V result = build::is_text(node, node.input(0)) ? build::equal_texts(node, node.input(0), node.input(1))
                                                 : node.binary("equal", node.input(0), node.input(1));
  if (node.op() == "NotEqual") result = made(node, "not", result);
  node.set_output(0, result);
}

void convert_approximate_equal(NodeContext& node) {
  const V x = node.input(0);
  const double tolerance = node.real("tolerance", static_cast<double>(1e-5F));
  const V apart = made(node, "abs", node.binary("sub", x, node.input(1)));
  node.set_output(0, node.binary("less", apart, number(node, x, tolerance)));
}

void convert_floor_mod(NodeContext& node) {
  node.set_output(0, build::floor_mod(node, node.maps(), node.input(0), node.input(1)));
}

void convert_floor_div(NodeContext& node) {
  node.set_output(0, build::floor_div(node, node.maps(), node.input(0), node.input(1)));
}

// The rest has the sign of the dividend.
void convert_truncate_mod(NodeContext& node) {
  node.set_output(0, node.elementwise("mod", {node.input(0), node.input(1)}, {{"fmod", int64_t{1}}}));
}

// 0 where `special` is: of DivNoNan the divisor, of MulNoNan the factor, of the others x.
void convert_no_nan(NodeContext& node) {
  const V x = node.input(0), y = node.input(1), zero = number(node, x, 0);
  if (node.op() == "DivNoNan")
    return node.set_output(0, selected(node, is_zero(node, y), zero, node.binary("div", x, y)));
  if (node.op() == "MulNoNan")
    return node.set_output(0, selected(node, is_zero(node, y), zero, node.binary("mul", x, y)));
  if (node.op() == "Xdivy")
    return node.set_output(0, selected(node, is_zero(node, x), zero, node.binary("div", x, y)));
  const V product = node.binary("mul", x, made(node, node.op() == "Xlog1py" ? "log1p" : "log", y));
  node.set_output(0, selected(node, is_zero(node, x), zero, product));
}

void convert_squared_difference(NodeContext& node) {
  const V difference = node.binary("sub", node.input(0), node.input(1));
  node.set_output(0, node.binary("mul", difference, difference));
}

void convert_atan2(NodeContext& node) {
  node.set_output(0, build::atan2(node, node.input(0), node.input(1)));
}

void convert_left_shift(NodeContext& node) {
  node.set_output(0, build::left_shift(node, node.input(0), node.input(1)));
}

void convert_right_shift(NodeContext& node) {
  node.set_output(0, build::right_shift(node, node.input(0), node.input(1)));
}

void convert_add_n(NodeContext& node) {
  V sum = node.input(0);
  for (const V next : node.inputs_from(1)) sum = node.binary("add", sum, next);
  node.set_output(0, sum);
}

// The bias stands along the channels.
void convert_bias_add(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  V bias = node.input(1);
  if (node.rank(bias) != 1 || node.rank(x) < 2)
    node.invalid("a bias of shape " + to_string(node.shape(bias)) + " for " + to_string(node.shape(x)));
  const bool is_first = node.op() == "BiasAdd" && node.is_channels_first();
  if (is_first) {
    ir::SymShape along(node.shape(x).size(), 1);
    along[1] = node.shape(bias)[0];
    bias = c.reshape(bias, along);
  }
  node.set_output(0, node.binary("add", x, bias));
}

namespace {

/// Bits of the fraction of a float.
int fraction_bits(DType dtype) {
  if (dtype == DType::kFloat64) return 52;
  if (dtype == DType::kFloat32) return 23;
  return dtype == DType::kFloat16 ? 10 : 7;
}

/// Without the bits that the shorter type does not have, where the cast would round by them.
V truncated(NodeContext& node, V x, DType to) {
  const DType from = node.dtype(x);
  if (!is_float(from) || !is_float(to)) return x;
  const int dropped = fraction_bits(from) - fraction_bits(to);
  if (dropped <= 0 || dtype_bytes(from) <= dtype_bytes(to)) return x;
  Compose c(node);
  const DType bits = from == DType::kFloat64 ? DType::kInt64 : DType::kInt32;
  const V mask = c.cast(c.ints({-(int64_t{1} << dropped)}, {}), bits);
  return build::bitcast(node, c.binary("and", build::bitcast(node, x, bits), mask), from);
}

}  // namespace

// Of complex numbers that become real ones the imaginary parts are dropped.
// Whole numbers that are known stay known as real ones: tf.range(n) of reals casts its ends. Of free dims a
// cast knows as much.
std::optional<V> known_reals(NodeContext& node, V x, DType to) {
  if (node.graph().value(x).known.is_symbolic()) return std::nullopt;
  const Tensor* known = node.graph().value(x).tensor();
  if (known == nullptr || !is_integer(known->dtype()) || !is_float(to)) return std::nullopt;
  if (known->num_elements() > ir::kMaxKnownElements) return std::nullopt;
  constexpr double kMostExact = 9007199254740992.0;  // 2^53
  std::vector<double> values;
  for (int64_t i = 0; i < known->num_elements(); ++i) {
    values.push_back(known->element_as_double(i));
    if (std::abs(values.back()) > kMostExact) return std::nullopt;
  }
  return Compose(node).doubles(to, values, known->shape());
}

void convert_cast(NodeContext& node) {
  const auto* given = std::get_if<Complex>(&node.item(0).value);
  if (const std::optional<DType> parts = dtype_of_parts(node.file_type("DstT"))) {
    const V real = node.cast(given == nullptr ? node.input(0) : given->real, *parts);
    const V imaginary = given == nullptr ? Compose(node).filled(*parts, node.shape(real), 0)
                                         : node.cast(given->imaginary, *parts);
    return node.set_item(0, {Complex{real, imaginary}, {}});
  }
  const DType to = node.dtype_attr("DstT");
  if (given != nullptr) return node.set_output(0, node.cast(given->real, to));
  const V x = node.input(0);
  if (const std::optional<V> reals = known_reals(node, x, to)) return node.set_output(0, *reals);
  node.set_output(0, node.cast(node.flag("Truncate", false) ? truncated(node, x, to) : x, to));
}

void convert_bitcast(NodeContext& node) {
  node.set_output(0, build::bitcast(node, node.input(0), node.dtype_attr("type")));
}

// The condition may be a row, one a part of the first axis.
void convert_select(NodeContext& node) {
  V condition = node.input(0);
  const V x = node.input(1);
  const size_t rank = node.shape(x).size();
  if (node.op() == "Select" && node.rank(condition) == 1 && rank > 1) {
    ir::SymShape along(rank, 1);
    along[0] = node.shape(condition)[0];
    condition = node.reshape(condition, along);
  }
  node.set_output(0, selected(node, condition, x, node.input(2)));
}

// What passes its operands on. Items of all kinds: tensors, variables, lists.
void convert_identity(NodeContext& node) {
  for (size_t i = 0; i < node.num_inputs(); ++i) node.set_item(i, {node.item(i).value, {}});
}

void convert_first(NodeContext& node) { node.set_item(0, {node.item(0).value, {}}); }

// A shape that the operand is to have: what it demands of extents holds from here on.
void convert_ensure_shape(NodeContext& node) {
  const TensorShape wanted = node.shape_attr("shape");
  const V x = node.input(0);
  const ir::SymShape shape = node.shape(x);
  bool fits = !wanted.has_rank || wanted.dims.size() == shape.size();
  for (size_t d = 0; fits && wanted.has_rank && d < shape.size(); ++d)
    fits = wanted.dims[d] < 0 || ir::demand(ir::Relation::kEqual, shape[d], wanted.dims[d]);
  if (!fits) node.invalid("an operand of shape " + to_string(shape) + " where another one is asked for");
  node.set_output(0, x);
}

// Nothing to compute.
void convert_nothing(NodeContext&) {}

// Which of the devices, of which there are none but CPUs, the model runs on.
void convert_device_index(NodeContext& node) {
  const std::vector<std::string> devices = node.texts("device_names");
  const auto found = std::find(devices.begin(), devices.end(), "CPU") - devices.begin();
  node.set_output(0, Compose(node).cast(Compose(node).ints({found}, {}), DType::kInt32));
}

void convert_placeholder(NodeContext& node) {
  node.unsupported("node", "it is an input that the signature does not have");
}

void convert_const(NodeContext& node) {
  const TensorValue& value = node.tensor_attr("value");
  // Bytes that are no text: what only passes them on, or leaves them, is imported all the same.
  const bool is_bytes = value.dtype == DataType::kString &&
                        !std::all_of(value.strings.begin(), value.strings.end(), [](std::string_view text) {
                          return is_utf8(text) && !text.ends_with('\0');
                        });
  if (is_bytes) return node.set_item(0, {});
  ImportState& state = node.import_state();
  if (dtype_of_parts(value.dtype)) {
    const auto known = state.complex_constants.find(&value);
    if (known != state.complex_constants.end()) return node.set_item(0, {known->second, {}});
    auto [real, imaginary] = state.loaded.complex_constant(value);
    const Complex made{node.file_constant(std::move(real)), node.file_constant(std::move(imaginary))};
    state.complex_constants.emplace(&value, made);
    return node.set_item(0, {made, {}});
  }
  if (!dtype_of(value.dtype))
    node.unsupported("value", "elements of type " + (type_name(value.dtype).empty()
                                                         ? std::to_string(static_cast<int32_t>(value.dtype))
                                                         : std::string(type_name(value.dtype))));
  const auto known = state.constants.find(&value);
  if (known != state.constants.end()) return node.set_item(0, {known->second, {}});
  const V made = node.file_constant(state.loaded.constant(value));
  state.constants.emplace(&value, made);
  node.set_item(0, {made, {}});
}

// Rounded to the steps of a range. The bounds are attributes, or operands, one each or one a channel.
void convert_fake_quant(NodeContext& node) {
  const int64_t bits = node.integer("num_bits", 8);
  const bool is_narrow = node.flag("narrow_range", false);
  const V x = node.input(0);
  if (node.op() == "FakeQuantWithMinMaxArgs") {
    const build::FakeQuantSpec spec{static_cast<float>(node.real("min", -6)),
                                    static_cast<float>(node.real("max", 6)), bits, is_narrow};
    return node.set_output(0, build::fake_quant(node, node.maps(), x, spec));
  }
  const ir::SymShape bounds = node.shape(node.input(1));
  const bool is_row = node.op() == "FakeQuantWithMinMaxVarsPerChannel";
  if (bounds.size() != (is_row ? 1 : 0) || !ir::demand_equal(bounds, node.shape(node.input(2))) ||
      node.rank(x) < static_cast<int64_t>(bounds.size()))
    node.invalid("a range of shape " + to_string(bounds));
  const ::tensormill::Tensor* low = node.graph().value(node.input(1)).tensor();
  const ::tensormill::Tensor* high = node.graph().value(node.input(2)).tensor();
  build::FakeQuantSpec spec{0, 0, bits, is_narrow};
  const bool is_known = !is_row && low != nullptr && high != nullptr;
  if (!is_known || (low->element_as_double(0) == 0 && high->element_as_double(0) == 0))
    return node.set_output(0, build::fake_quant(node, x, node.input(1), node.input(2), spec));
  spec.min = static_cast<float>(low->element_as_double(0));
  spec.max = static_cast<float>(high->element_as_double(0));
  node.set_output(0, build::fake_quant(node, node.maps(), x, spec));
}

}  // namespace tensormill::frontend::tensorflow
