// Operators on the elements of two or three tensors, or of tensors and numbers.
#include <array>
#include <limits>
#include <utility>

#include "compiler/build/numbers/arithmetic.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

struct Pair {
  V a, b;
};

/// Both operands in the type that they have together.
Pair promoted(NodeContext& node, const char* first = "self", const char* second = "other") {
  const Operand a = node.operand(first), b = node.operand(second);
  const DType dtype = node.common_type({a, b});
  return {node.as(a, dtype), node.as(b, dtype)};
}

/// As real numbers.
Pair real_pair(NodeContext& node, const char* first = "self", const char* second = "other") {
  const Operand a = node.operand(first), b = node.operand(second);
  const DType common = node.common_type({a, b});
  const DType dtype = is_float(common) ? common : DType::kFloat32;
  return {node.as(a, dtype), node.as(b, dtype)};
}

/// Both as torch multiplies and divides what has the type `dtype` in common: a second operand without dims is
/// as precise as elements are computed, all others are rounded to the type before.
Pair factors(NodeContext& node, const Operand& a, const Operand& b, DType dtype) {
  if (b.type.kind == OperandKind::kTensor) return {node.as(a, dtype), node.as(b, dtype)};
  return {widened(node, node.as(a, dtype)), node.as(b, computed_in(dtype))};
}

V added(NodeContext& node, const char* op, V a, V b) {
  if (node.dtype(a) != DType::kBool) return node.add(op, {a, b});
  if (std::string_view(op) == "sub") node.invalid("of truth values");
  return node.add(std::string_view(op) == "add" ? "or" : "and", {a, b});
}

}  // namespace

// self + alpha * other, self - alpha * other, other - alpha * self
void convert_add(NodeContext& node) {
  const Pair pair = promoted(node);
  V a = pair.a, b = pair.b;
  if (node.op() == "rsub") std::swap(a, b);
  const Number alpha = node.number("alpha");
  const auto* whole = std::get_if<ir::SymInt>(&alpha);
  const bool is_one = whole != nullptr && whole->is_constant() && whole->hint() == 1;
  const DType dtype = node.dtype(b);
  if (!is_one && dtype != DType::kBool) {
    Operand factor;
    factor.number = alpha;
    a = widened(node, a);
    b = Compose(node).mul(widened(node, b), widened(node, node.as(factor, dtype)));
  }
  node.set_output(0, Compose(node).cast(added(node, node.op() == "add" ? "add" : "sub", a, b), dtype));
}

void convert_mul(NodeContext& node) {
  const Operand a = node.operand("self"), b = node.operand("other");
  const DType dtype = node.common_type({a, b});
  const Pair pair = factors(node, a, b, dtype);
  node.set_output(0, Compose(node).cast(added(node, "mul", pair.a, pair.b), dtype));
}

void convert_div(NodeContext& node) {
  Compose c(node);
  std::string mode = "true";
  if (node.op() == "floor_divide") mode = "floor";
  if (node.row().overload.ends_with("_mode"))
    mode = node.has("rounding_mode") ? node.text("rounding_mode") : "true";
  const Operand x = node.operand("self"), y = node.operand("other");
  DType dtype = node.common_type({x, y});
  if (mode == "true" && !is_float(dtype)) dtype = DType::kFloat32;
  const Pair pair = factors(node, x, y, dtype);
  if (mode == "true") return node.set_output(0, c.cast(c.div(pair.a, pair.b), dtype));
  const V a = numeric(node, pair.a), b = numeric(node, pair.b);
  // Quotients that are rounded toward zero are rounded to the type before.
  node.set_output(0, node.as_output(mode == "floor" ? floor_divided(node, widened(node, a), widened(node, b))
                                                    : quotient(node, a, b)));
}

void convert_remainder(NodeContext& node) {
  const Pair pair = promoted(node);
  if (node.op() == "remainder") {
    const V y = python_mod(node, widened(node, pair.a), widened(node, pair.b));
    return node.set_output(0, Compose(node).cast(y, node.dtype(pair.a)));
  }
  node.set_output(0, node.add("mod", {pair.a, pair.b}, {{"fmod", int64_t{1}}}));
}

// Small whole powers are products, so that they are exact, and quick.
void convert_pow(NodeContext& node) {
  Compose c(node);
  const char* second = "exponent";
  const Operand a = node.operand("self"), b = node.operand(second);
  const DType dtype = node.common_type({a, b});
  const V x = node.as(a, dtype);
  if (b.value == ir::kAbsent && !std::holds_alternative<bool>(b.number)) {
    const double power = node.real(second);
    const bool is_real = is_float(dtype);
    if (power == 2) return node.set_output(0, c.mul(x, x));
    if (power == 3) return node.set_output(0, c.mul(c.mul(x, x), x));
    if (power == 1) return node.set_output(0, node.add("identity", {x}));
    if (is_real && power == 0.5) return node.set_output(0, c.unary("sqrt", x));
    if (is_real && power == -0.5) return node.set_output(0, c.unary("rsqrt", x));
    if (is_real && power == -1) return node.set_output(0, c.unary("reciprocal", x));
  }
  const V power = numeric(node, node.as(b, dtype));
  node.set_output(0, c.cast(c.binary("pow", numeric(node, x), power), dtype));
}

// In float64, whatever the operands are.
void convert_float_power(NodeContext& node) {
  const auto wide = [&](const char* name) { return node.as(node.operand(name), DType::kFloat64); };
  node.set_output(0, Compose(node).binary("pow", wide("self"), wide("exponent")));
}

// Whether both are equal, or no further apart than atol + rtol * |other|.
void convert_isclose(NodeContext& node) {
  Compose c(node);
  const Pair pair = promoted(node);
  const bool takes_nan = node.flag("equal_nan");
  const double relative = node.real("rtol"), absolute = node.real("atol");
  const V a = numeric(node, pair.a), b = numeric(node, pair.b);
  V y = c.binary("equal", a, b);
  const V x = floated(node, a), other = floated(node, b);
  const V apart = c.unary("abs", c.sub(x, other));
  const V most = c.plus(c.times(c.unary("abs", other), relative), absolute);
  const V is_near = both(node, c.binary("less_equal", apart, most),
                         c.binary("less", apart, c.number(apart, std::numeric_limits<double>::infinity())));
  y = node.add("or", {y, is_near});
  if (takes_nan) y = node.add("or", {y, both(node, node.add("is_nan", {x}), node.add("is_nan", {other}))});
  node.set_output(0, y);
}

void convert_comparison(NodeContext& node) {
  static constexpr std::array<build::OpName, 11> kNames = {{{"greater", "greater"},
                                                            {"greater_equal", "greater_equal"},
                                                            {"less", "less"},
                                                            {"less_equal", "less_equal"},
                                                            {"not_equal", "equal"},
                                                            {"eq", "equal"},
                                                            {"ne", "equal"},
                                                            {"lt", "less"},
                                                            {"le", "less_equal"},
                                                            {"gt", "greater"},
                                                            {"ge", "greater_equal"}}};
  const char* op = build::graph_name(node, kNames, node.op());
  Pair pair = promoted(node);
  if (std::string_view(op) != "equal") pair = {numeric(node, pair.a), numeric(node, pair.b)};
  const V result = node.add(op, {pair.a, pair.b});
  node.set_output(0, node.as_output(node.op().starts_with("n") ? negated(node, result) : result));
}

void convert_logical(NodeContext& node) {
  const V a = to_bool(node, node.tensor("self")), b = to_bool(node, node.tensor("other"));
  const char* op = node.op() == "logical_and" ? "and" : node.op() == "logical_or" ? "or" : "xor";
  node.set_output(0, node.as_output(node.add(op, {a, b})));
}

void convert_bitwise(NodeContext& node) {
  const Pair pair = promoted(node);
  if (is_float(node.dtype(pair.a))) node.invalid("of real numbers");
  const std::string& op = node.op();
  const bool is_and = op == "bitwise_and" || op == "__and__", is_or = op == "bitwise_or" || op == "__or__";
  node.set_output(0, node.add(is_and ? "and" : is_or ? "or" : "xor", {pair.a, pair.b}));
}

// By less than 0, or by all bits or more, to the right the sign alone is left, to the left nothing.
void convert_shift(NodeContext& node) {
  Compose c(node);
  const Pair pair = promoted(node);
  const DTypeInfo& info = dtype_info(node.dtype(pair.a));
  if (is_float(node.dtype(pair.a)) || node.dtype(pair.a) == DType::kBool) node.invalid("of no whole numbers");
  const bool is_left = node.op() == "bitwise_left_shift" || node.op() == "__lshift__";
  if (is_left) return node.set_output(0, build::left_shift(node, pair.a, pair.b));
  if (!info.is_signed)
    return node.set_output(0, node.add("bit_shift", {pair.a, pair.b}, {{"direction", std::string("right")}}));
  const V by = c.where(is_negative(node, pair.b), c.number(pair.b, info.bits - 1), pair.b);
  node.set_output(0, build::right_shift(node, pair.a, by));
}

// Of f*, a number where one of both is none.
void convert_extremum(NodeContext& node) {
  Compose c(node);
  const Pair pair = promoted(node);
  const std::string& op = node.op();
  const bool is_max = op == "maximum" || op == "max" || op == "fmax";
  const V a = numeric(node, pair.a), b = numeric(node, pair.b);
  V y = c.binary(is_max ? "max" : "min", a, b);
  if (op.starts_with('f') && is_float(node.dtype(a)))
    y = c.where(node.add("is_nan", {a}), b, c.where(node.add("is_nan", {b}), a, y));
  node.set_output(0, node.as_output(y));
}

namespace {

/// Below 0, as -0 is, too.
V has_sign(NodeContext& node, V x) {
  const V is_below = is_negative(node, Compose(node).unary("reciprocal", x));
  return Compose(node).where(is_zero(node, x), is_below, is_negative(node, x));
}

/// The angle of (x, y), of whatever signs and infinities.
V angle(NodeContext& node, V y, V x) {
  Compose c(node);
  const V are_far = both(node, node.add("is_inf", {x}), node.add("is_inf", {y}));
  const V across = c.where(are_far, c.unary("sign", x), x), up = c.where(are_far, c.unary("sign", y), y);
  const V is_origin = both(node, is_zero(node, x), is_zero(node, y));
  const V flat =
      c.where(is_origin, y, c.unary("atan", c.div(up, c.where(is_zero(node, x), c.number(x, 0), across))));
  const V turn = c.where(has_sign(node, y), c.number(x, -std::numbers::pi), c.number(x, std::numbers::pi));
  const V is_left = node.add("or", {is_negative(node, x), both(node, is_origin, has_sign(node, x))});
  return c.where(is_left, c.add(flat, turn), flat);
}

V signed_as(NodeContext& node, V a, V b) {
  Compose c(node);
  const V is_below = has_sign(node, b);
  const V size = c.unary("abs", a);
  return c.where(is_below, c.unary("neg", size), size);
}

}  // namespace

V log_of_sum(NodeContext& node, V a, V b) {
  Compose c(node);
  const V apart = c.unary("neg", c.unary("abs", c.sub(a, b)));
  const V more = c.where(c.binary("equal", a, b), c.number(a, std::numbers::ln2), c.unary("softplus", apart));
  return c.add(c.binary("max", a, b), more);
}

void convert_real_binary(NodeContext& node) {
  Compose c(node);
  const Pair pair = real_pair(node);
  const V a = widened(node, pair.a), b = widened(node, pair.b);
  const auto set_rounded = [&](V y) { node.set_output(0, c.cast(y, node.dtype(pair.a))); };
  const std::string& op = node.op();
  if (op == "atan2" || op == "arctan2") return set_rounded(angle(node, a, b));
  if (op == "hypot") return set_rounded(build::hypotenuse(node, a, b));
  if (op == "logaddexp") return set_rounded(log_of_sum(node, a, b));
  if (op == "logaddexp2") {
    const V sum = log_of_sum(node, c.times(a, std::numbers::ln2), c.times(b, std::numbers::ln2));
    return set_rounded(c.times(sum, 1 / std::numbers::ln2));
  }
  if (op == "copysign") return node.set_output(0, signed_as(node, pair.a, pair.b));
  if (op == "xlogy" || op == "special_xlogy" || op == "special_xlog1py") {
    const V zero = c.where(node.add("is_nan", {pair.b}), pair.b, c.number(pair.a, 0));
    const V log = c.unary(op == "special_xlog1py" ? "log1p" : "log", pair.b);
    return node.set_output(0, c.where(is_zero(node, pair.a), zero, c.mul(pair.a, log)));
  }
  node.invalid("it has a converter of other operators");
}

// Times a power of two, which of whole exponents is exact, and of others a number of their type.
void convert_ldexp(NodeContext& node) {
  Compose c(node);
  const Operand self = node.operand("self");
  Operand power = node.operand("other");
  const bool is_whole = !is_float(power.type.dtype);
  if (is_whole) power.type.dtype = is_float(self.type.dtype) ? self.type.dtype : DType::kFloat32;
  const V exponent = node.as(power, computed_in(power.type.dtype));
  V factor = c.binary("pow", c.number(exponent, 2), exponent);
  if (!is_whole) factor = c.cast(factor, power.type.dtype);
  const DType dtype = node.common_type({self, power}), wide = computed_in(dtype);
  node.set_output(0, c.cast(c.mul(node.as(self, wide), c.cast(factor, wide)), dtype));
}

void convert_heaviside(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const V number = numeric(node, x);
  const V above = c.cast(c.binary("greater", number, c.number(number, 0)), node.dtype(x));
  node.set_output(0, c.where(is_zero(node, x), node.tensor("values"), above));
}

// start + weight * (end - start)
void convert_lerp(NodeContext& node) {
  Compose c(node);
  const DType dtype = node.dtype(node.tensor("self"));
  const V start = widened(node, node.tensor("self")), end = widened(node, node.tensor("end"));
  const V weight = node.as(node.operand("weight"), node.dtype(start));
  node.set_output(0, c.cast(c.add(start, c.mul(weight, c.sub(end, start))), dtype));
}

// self + value * tensor1 * tensor2, or divided by tensor2
void convert_addc(NodeContext& node) {
  Compose c(node);
  const DType dtype = node.output_dtype();
  const auto taken = [&](const char* name) { return widened(node, c.cast(node.tensor(name), dtype)); };
  V a = taken("tensor1");
  const V b = taken("tensor2");
  const Operand value = node.operand("value");
  if (node.real("value") != 1) a = c.mul(node.as(value, node.dtype(a)), a);
  const V part = node.op() == "addcmul" ? c.mul(a, b) : c.div(a, b);
  node.set_output(0, c.cast(c.add(taken("self"), part), dtype));
}

void convert_where(NodeContext& node) {
  const Pair pair = promoted(node);
  node.set_output(0, Compose(node).where(to_bool(node, node.tensor("condition")), pair.a, pair.b));
}

void convert_masked_fill(NodeContext& node) {
  const V x = node.tensor("self");
  const V value = node.as(node.operand("value"), node.dtype(x));
  node.set_output(0, Compose(node).where(to_bool(node, node.tensor("mask")), value, x));
}

}  // namespace tensormill::frontend::pytorch
