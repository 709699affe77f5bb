// Elementwise operators. Names of graph operators are those of ONNX in snake case unless the table says
// otherwise.
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

std::string snake_case(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kExceptions = {
      {{"GreaterOrEqual", "greater_equal"},
       {"LessOrEqual", "less_equal"},
       {"BitwiseAnd", "and"},
       {"BitwiseNot", "not"},
       {"BitwiseOr", "or"},
       {"BitwiseXor", "xor"}}};
  for (const auto& [onnx_name, graph_name] : kExceptions) {
    if (name == onnx_name) return std::string(graph_name);
  }
  std::string result;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool upper = name[i] >= 'A' && name[i] <= 'Z';
    if (upper && i != 0) result += '_';
    result += upper ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
  }
  return result;
}

}  // namespace

void convert_unary(NodeContext& context) {
  context.set_output(0, context.add(snake_case(context.node().op_type), {context.input(0)}));
}

// Of integers: all but the largest are below 1, so that float32 would round too many up to it.
void convert_erf(NodeContext& context) {
  Compose c(context);
  const DType dtype = c.dtype(context.input(0));
  if (is_float(dtype)) return convert_unary(context);
  context.set_output(0, c.cast(c.unary("erf", c.cast(context.input(0), DType::kFloat64)), dtype));
}

// float32 has all values of the narrow types.
void convert_is_nan(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  context.set_output(0, c.unary("is_nan", is_narrow(c.dtype(x)) ? c.cast(x, DType::kFloat32) : x));
}

namespace {

/// Before opset 7 the second operand aligned with the first one's dims from attribute axis on.
ir::ValueId aligned_operand(NodeContext& context) {
  const ir::ValueId b = context.input(1);
  if (context.opset() >= 7 || !context.has_attr("axis")) return b;
  const int64_t rank = context.rank(context.input(0));
  const int64_t axis = context.normalize_axis(context.int_attr("axis", 0), rank);
  const int64_t behind = rank - axis - context.rank(b);
  if (behind < 0) context.invalid("the second operand does not fit behind axis " + std::to_string(axis));
  ir::SymShape shape = context.type(b).shape;
  shape.insert(shape.end(), static_cast<size_t>(behind), 1);
  return context.reshape(b, shape);
}

}  // namespace

void convert_binary(NodeContext& context) {
  const ir::ValueId b = aligned_operand(context);
  context.set_output(
      0, context.add(snake_case(context.node().op_type), dynamic_broadcast(context, {context.input(0), b})));
}

void convert_identity(NodeContext& context) {
  const ir::ValueType& type = context.type(context.input(0));
  if (is_narrow(type.dtype)) return context.set_output(0, context.reshape(context.input(0), type.shape));
  context.set_output(0, context.add("identity", {context.input(0)}));
}

void convert_variadic(NodeContext& context) {
  const std::string& op = context.node().op_type;
  const std::string combine = op == "Max" ? "max" : op == "Min" ? "min" : "add";
  ir::ValueId result = context.input(0);
  for (size_t i = 1; i < context.num_inputs(); ++i)
    result = context.add(combine, dynamic_broadcast(context, {result, context.input(i)}));
  if (op == "Mean") {
    const double count = static_cast<double>(context.num_inputs());
    result = context.add("div", {result, context.scalar_like(result, count)});
  }
  context.set_output(0, result);
}

namespace {

/// The significant bits of a type's numbers.
int digits(DType dtype) {
  if (dtype == DType::kFloat64) return 53;
  if (dtype == DType::kFloat32) return 24;
  if (dtype == DType::kFloat16) return 11;
  if (dtype == DType::kBFloat16) return 8;
  return dtype_info(dtype).bits;
}

/// Whether `type`, one of floats, has every number of `other`.
bool holds(DType type, DType other) {
  if (type == other) return true;
  if (!is_float(other)) return dtype_info(other).bits <= digits(type);
  // Neither of the two types of 16 bits has all of the other's.
  return digits(type) >= 24 && digits(other) <= digits(type);
}

/// Whether it has the constant's numbers. Those of 64-bit integers count as the doubles that are next to them
/// up to where these are the integers themselves.
bool holds_values(DType type, const Tensor& values) {
  Tensor one(type, {});
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const double value = values.element_as_double(i);
    one.set_element(0, value);
    const bool is_exact = is_float(values.dtype()) || std::fabs(value) < 0x1p53;
    if (!is_exact || one.element_as_double(0) != value) return false;
  }
  return true;
}

/// The narrowest type of floats that has the numbers of both; of 64-bit integers float64 has all up to 2^53.
DType power_type(DType base, DType exponent) {
  for (const DType type : {base, DType::kFloat32}) {
    if (holds(type, base) && holds(type, exponent)) return type;
  }
  return DType::kFloat64;
}

/// base^exponent of float64, where the exponent is `whole`, a 64-bit integer. All doubles from 2^53 on are
/// even, so that a negative base loses its sign there.
ir::ValueId with_sign_of_odd_power(NodeContext& context, ir::ValueId base, ir::ValueId whole,
                                   ir::ValueId power) {
  Compose c(context);
  const ir::ValueId rest = c.binary("mod", whole, c.number(whole, 2));
  const ir::ValueId is_odd = context.add("not", {c.binary("equal", rest, c.number(whole, 0))});
  const ir::ValueId zero = c.number(base, 0);
  // -0 is told from 0 by its inverse.
  const ir::ValueId is_negative =
      c.binary("or", c.binary("less", base, zero), c.binary("less", c.div(c.number(base, 1), base), zero));
  const ir::ValueId size = c.unary("abs", power);
  return c.where(c.binary("and", is_odd, is_negative), c.unary("neg", size), power);
}

}  // namespace

void convert_pow(NodeContext& context) {
  const std::vector<ir::ValueId> operands =
      dynamic_broadcast(context, {context.input(0), aligned_operand(context)});
  const ir::ValueId base = operands[0];
  const ir::ValueId exponent = operands[1];
  const DType dtype = context.type(base).dtype;
  const DType of_exponent = context.type(exponent).dtype;
  if (!is_float(dtype)) {
    // Integers modulo 2^64 are those modulo fewer bits; of a power that is no integer double has the digits.
    const DType wide = is_float(of_exponent)                            ? DType::kFloat64
                       : dtype == DType::kInt32 && of_exponent == dtype ? dtype
                       : dtype_info(of_exponent).is_signed              ? DType::kInt64
                                                                        : DType::kUInt64;
    const auto widened = [&](ir::ValueId x) {
      return context.type(x).dtype == wide ? x : context.add("cast", {x}, {{"to", wide}});
    };
    const ir::ValueId power = context.add("pow", {widened(base), widened(exponent)});
    context.set_output(0, wide == dtype ? power : context.add("cast", {power}, {{"to", dtype}}));
    return;
  }
  // The result is what the exponent's own value gives, not that which the base's type has next to it.
  Compose c(context);
  const bool is_held =
      context.is_computable(exponent) && holds_values(dtype, context.known_value(exponent, "exponent"));
  const DType wide = is_held ? dtype : power_type(dtype, of_exponent);
  const ir::ValueId wide_base = c.cast(base, wide);
  ir::ValueId power = c.binary("pow", wide_base, c.cast(exponent, wide));
  if (!is_held && !is_float(of_exponent) && dtype_info(of_exponent).bits == 64)
    power = with_sign_of_odd_power(context, wide_base, exponent, power);
  context.set_output(0, c.cast(power, dtype));
}

void convert_mod(NodeContext& context) {
  context.set_output(0, context.add("mod", dynamic_broadcast(context, {context.input(0), context.input(1)}),
                                    {{"fmod", context.int_attr("fmod", 0)}}));
}

void convert_bit_shift(NodeContext& context) {
  const std::string direction = context.string_attr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") context.invalid("direction is \"" + direction + "\"");
  const std::string lower = direction == "LEFT" ? "left" : "right";
  context.set_output(
      0, context.add("bit_shift", dynamic_broadcast(context, {context.input(0), context.input(1)}),
                     {{"direction", lower}}));
}

void convert_prelu(NodeContext& context) {
  const ir::ValueId x = context.input(0);
  ir::ValueId slope = context.input(1);
  // A slope per channel may come as [C]: unidirectional broadcasting would align it with the last dim.
  const ir::SymShape shape = context.type(slope).shape;
  const int64_t rank = context.rank(x);
  if (shape.size() == 1 && rank > 2 && shape[0] != 1 && shape[0] == context.type(x).shape[1] &&
      shape[0] != context.type(x).shape.back()) {
    ir::SymShape broadcast(static_cast<size_t>(rank - 1), 1);
    broadcast[0] = shape[0];
    slope = context.reshape(slope, broadcast);
  }
  context.require_bound_extents(x, std::max<int64_t>(rank - context.rank(slope), 0));
  if (is_float(context.type(x).dtype)) return context.set_output(0, context.add("prelu", {x, slope}));
  Compose c(context);
  context.set_output(0, c.where(c.binary("less", x, c.number(x, 0)), c.mul(x, slope), x));
}

void convert_where(NodeContext& context) {
  context.set_output(0, context.add("where", dynamic_broadcast(context, {context.input(0), context.input(1),
                                                                         context.input(2)})));
}

namespace {

/// 0 of types that are no floats.
double largest_finite(DType dtype) {
  if (dtype == DType::kFloat64) return std::numeric_limits<double>::max();
  if (dtype == DType::kFloat32) return std::numeric_limits<float>::max();
  if (dtype == DType::kFloat16) return 65504;
  return dtype == DType::kBFloat16 ? std::ldexp(255.0 / 128, 127) : 0;
}

}  // namespace

void convert_clip_attrs(NodeContext& context) {
  // The defaults are finite: infinities are limited, too, but for those of types of less range.
  constexpr double kLargest = std::numeric_limits<float>::max();
  const DType dtype = context.type(context.input(0)).dtype;
  const bool has_default = dtype == DType::kFloat32 || dtype == DType::kFloat64;
  ir::Attrs attrs;
  if (has_default || context.has_attr("min")) attrs.set("min", context.float_attr("min", -kLargest));
  if (has_default || context.has_attr("max")) attrs.set("max", context.float_attr("max", kLargest));
  context.set_output(0, context.add("clip", {context.input(0)}, attrs));
}

// Bounds that are left out are the type's largest finite numbers.
void convert_clip(NodeContext& context) {
  std::vector<ir::ValueId> inputs{context.input(0), context.optional_input(1), context.optional_input(2)};
  const double largest = largest_finite(context.type(inputs[0]).dtype);
  ir::Attrs attrs;
  if (inputs[1] == ir::kAbsent && largest != 0) attrs.set("min", -largest);
  if (inputs[2] == ir::kAbsent && largest != 0) attrs.set("max", largest);
  context.set_output(0, context.add("clip", std::move(inputs), attrs));
}

namespace {

void cast_to(NodeContext& context, DType to) {
  if (to == kString) return context.set_output(0, text_of_numbers(context, context.input(0)));
  if (is_text(context, context.input(0)))
    return context.set_output(0, numbers_of_text(context, context.input(0), to));
  ir::Attrs attrs{{"to", to}};
  if (is_narrow(to) && is_float(to)) {
    attrs.set("saturate", context.int_attr("saturate", 1));
    attrs.set("round_mode", context.string_attr("round_mode", "up"));
  }
  context.set_output(0, context.add("cast", {context.input(0)}, std::move(attrs)));
}

/// Before opset 6 types were named.
DType dtype_of_name(const NodeContext& context, const std::string& name) {
  for (int32_t code = 1; code <= 16; ++code) {
    const std::optional<DType> dtype = dtype_of(code);
    if (dtype && data_type_name(code) == name) return *dtype;
  }
  context.unsupported("to", "type \"" + name + "\" is not implemented");
}

}  // namespace

void convert_cast(NodeContext& context) {
  constexpr int64_t kStringType = 8;  // TensorProto.DataType
  if (context.opset() < 6) return cast_to(context, dtype_of_name(context, context.string_attr("to", "")));
  cast_to(context, context.required_int("to") == kStringType ? kString : context.dtype_attr("to"));
}

void convert_bit_cast(NodeContext& context) {
  context.set_output(0, context.add("bit_cast", {context.input(0)}, {{"to", context.dtype_attr("to")}}));
}

void convert_cast_like(NodeContext& context) { cast_to(context, context.type(context.input(1)).dtype); }

void convert_elu(NodeContext& context) {
  context.set_output(0,
                     context.add("elu", {context.input(0)}, {{"alpha", context.float_attr("alpha", 1.0)}}));
}

void convert_selu(NodeContext& context) {
  const ir::Attrs attrs{{"alpha", context.float_attr("alpha", 1.67326319217681884765625)},
                        {"gamma", context.float_attr("gamma", 1.05070102214813232421875)}};
  context.set_output(0, context.add("selu", {context.input(0)}, attrs));
}

void convert_leaky_relu(NodeContext& context) {
  context.set_output(
      0, context.add("leaky_relu", {context.input(0)}, {{"alpha", context.float_attr("alpha", 0.01)}}));
}

void convert_hard_sigmoid(NodeContext& context) {
  const ir::Attrs attrs{{"alpha", context.float_attr("alpha", 0.2)},
                        {"beta", context.float_attr("beta", 0.5)}};
  context.set_output(0, context.add("hard_sigmoid", {context.input(0)}, attrs));
}

void convert_gelu(NodeContext& context) {
  const std::string approximate = context.string_attr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    context.invalid("approximate is \"" + approximate + "\"");
  context.set_output(0, context.add("gelu", {context.input(0)}, {{"approximate", approximate}}));
}

}  // namespace tensormill::frontend::onnx
