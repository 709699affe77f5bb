// com.microsoft's QLinear operators: dequantize, compute in float32, quantize. Means are those of the
// integers.
#include "compiler/build/maps/channels.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/quantized/quantize.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Operands index, index + 1 and index + 2: data, scale and zero point.
V operand(NodeContext& context, size_t index) {
  return dequantized(context, context.input(index), context.input(index + 1),
                     context.optional_input(index + 2));
}

/// `x` with the scale at `index` and the zero point behind it, in the type of `like`.
void set_quantized(NodeContext& context, V x, size_t index, V like) {
  Compose c(context);
  const V zero = context.optional_input(index + 1);
  const DType to = zero == ir::kAbsent ? c.dtype(like) : c.dtype(zero);
  const V scale = c.cast(c.reshape(context.input(index), {}), c.dtype(x));
  context.set_output(0, quantized(context, x, scale, zero == ir::kAbsent ? zero : c.reshape(zero, {}), to));
}

/// Quantizes what `mean` makes of operand 0 less its zero point, whose sums float32 holds; what is behind
/// them in float64 rounds as the exact value does.
template <typename Mean>
void set_mean(NodeContext& context, Mean mean) {
  Compose c(context);
  V zero = context.optional_input(2);
  if (zero != ir::kAbsent) zero = c.reshape(zero, {});
  const V value = mean(centered(c, context.input(0), zero, DType::kFloat32));
  const V scale = c.cast(c.reshape(context.input(1), {}), DType::kFloat64);
  set_quantized(context, c.mul(c.cast(value, DType::kFloat64), scale), 3, context.input(0));
}

/// `pool` of x, whose channels stand last if attribute channels_last says so.
template <typename Pool>
V pooled(NodeContext& context, V x, Pool pool) {
  return context.int_attr("channels_last", 0) == 0 ? pool(x) : with_channels_first(context, x, pool);
}

}  // namespace

// QLinearAdd, QLinearMul: A, B and the result each with scale and zero point.
void convert_qlinear_binary(NodeContext& context) {
  const char* op = context.node().op_type == "QLinearAdd" ? "add" : "mul";
  const V result = context.add(op, {operand(context, 0), operand(context, 3)});
  set_quantized(context, result, 6, context.input(0));
}

void convert_qlinear_unary(NodeContext& context) {
  const V x = operand(context, 0);
  const V result = context.node().op_type == "QLinearSigmoid"
                       ? context.add("sigmoid", {x})
                       : context.add("leaky_relu", {x}, {{"alpha", context.float_attr("alpha", 0.01)}});
  set_quantized(context, result, 3, context.input(0));
}

void convert_qlinear_average_pool(NodeContext& context) {
  set_mean(context, [&](V integers) {
    return pooled(context, integers, [&](V x) { return average_pool(context, x); });
  });
}

void convert_qlinear_global_average_pool(NodeContext& context) {
  set_mean(context, [&](V integers) {
    return pooled(context, integers, [&](V x) { return Compose(context).reduce_spatial("reduce_mean", x); });
  });
}

void convert_qlinear_reduce_mean(NodeContext& context) {
  Compose c(context);
  const int64_t rank = context.rank(context.input(0));
  ir::Ints axes = context.ints_attr("axes", c.count_to(rank));
  for (int64_t& axis : axes) axis = context.normalize_axis(axis, rank);
  const bool keepdims = context.int_attr("keepdims", 1) != 0;
  set_mean(context, [&](V x) { return c.reduce("reduce_mean", x, axes, keepdims); });
}

// Of one axis, or, by the opset that attribute opset names, of all from it on.
void convert_qlinear_softmax(NodeContext& context) {
  Compose c(context);
  const V x = operand(context, 0);
  const ir::SymShape shape = c.shape(x);
  const int64_t rank = context.rank(x), axis = context.normalize_axis(context.int_attr("axis", -1), rank);
  V result = ir::kAbsent;
  if (context.required_int("opset") >= 13) {
    result = context.add("softmax", {x}, {{"axis", axis}});
  } else {
    const ir::SymInt inner = num_elements(ir::SymShape(shape.begin() + axis, shape.end()));
    const V rows = c.reshape(x, {num_elements(ir::SymShape(shape.begin(), shape.begin() + axis)), inner});
    result = c.reshape(context.add("softmax", {rows}, {{"axis", int64_t{1}}}), shape);
  }
  set_quantized(context, result, 3, context.input(0));
}

// Condition, then X, Y and the result with scale and zero point.
void convert_qlinear_where(NodeContext& context) {
  const V result = Compose(context).where(context.input(0), operand(context, 1), operand(context, 4));
  set_quantized(context, result, 7, context.input(1));
}

// Scale and zero point of the result, then data, scale and zero point of each part.
void convert_qlinear_concat(NodeContext& context) {
  Compose c(context);
  if (context.num_inputs() < 5 || context.num_inputs() % 3 != 2)
    context.invalid("has " + std::to_string(context.num_inputs()) + " operands");
  const int64_t axis = context.normalize_axis(context.required_int("axis"), context.rank(context.input(2)));
  std::vector<V> parts;
  for (size_t i = 2; i < context.num_inputs(); i += 3) parts.push_back(operand(context, i));
  set_quantized(context, c.concat(std::move(parts), axis), 0, context.input(2));
}

// A, B and the result each with scale and zero point, B's one or one a column; C int32 at the products'
// scale. Without a scale the result is float32.
void convert_qgemm(NodeContext& context) {
  Compose c(context);
  const auto matrix = [&](size_t index, const char* transposed) {
    V x = context.input(index), zero = context.optional_input(index + 2);
    if (context.rank(x) != 2) context.invalid("operand " + std::to_string(index) + " is no matrix");
    const bool turned = context.int_attr(transposed, 0) != 0;
    if (turned) x = c.transpose(x, {1, 0});
    if (zero != ir::kAbsent && num_elements(c.shape(zero)) == 1) zero = c.reshape(zero, {});
    return centered(c, x, zero, DType::kInt32);
  };
  V sums = c.matmul(matrix(0, "transA"), matrix(3, "transB"));
  if (context.has_input(6)) sums = c.add(sums, context.input(6));
  V scale = c.mul(context.input(1), context.input(4));
  scale = c.times(num_elements(c.shape(scale)) == 1 ? c.reshape(scale, {}) : scale,
                  context.float_attr("alpha", 1.0));
  const V result = c.mul(c.cast(sums, DType::kFloat32), scale);
  if (!context.has_input(7)) return context.set_output(0, result);
  set_quantized(context, result, 7, context.input(0));
}

// A, B quantized, their scales and zero points, and a bias: float32 out.
void convert_matmul_integer_to_float(NodeContext& context) {
  Compose c(context);
  const V a = centered(c, context.input(0), context.optional_input(4), DType::kInt32);
  const V b = centered(c, context.input(1), context.optional_input(5), DType::kInt32);
  V result = c.mul(c.cast(c.matmul(a, b), DType::kFloat32), c.mul(context.input(2), context.input(3)));
  if (context.has_input(6)) result = c.add(result, context.input(6));
  context.set_output(0, result);
}

// A float32, quantized by its own range to uint8; B quantized, its scale and zero point, and a bias.
void convert_dynamic_quantize_matmul(NodeContext& context) {
  Compose c(context);
  const DynamicQuantized a = dynamic_quantized(context, context.input(0));
  const V left = centered(c, a.values, a.zero, DType::kInt32);
  const V right = centered(c, context.input(1), context.optional_input(3), DType::kInt32);
  V result = c.mul(c.cast(c.matmul(left, right), DType::kFloat32), c.mul(a.scale, context.input(2)));
  if (context.has_input(4)) result = c.add(result, context.input(4));
  context.set_output(0, result);
}

// LSTM with quantized weights: W [directions, input, 4*hidden], R [directions, hidden, 4*hidden] each with a
// scale and zero point, one for a direction or one for each of its columns. Inputs and states stay float32.
void convert_dynamic_quantize_lstm(NodeContext& context) {
  Compose c(context);
  const auto weights = [&](size_t index, size_t scale_at) {
    const V x = context.input(index);
    if (context.rank(x) != 3) context.invalid("weights have shape " + to_string(c.shape(x)));
    const auto for_columns = [&](size_t operand) {
      const V value = context.optional_input(operand);
      if (value == ir::kAbsent) return value;
      const ir::SymShape shape = c.shape(value);
      return c.reshape(value, shape.size() == 2 ? ir::SymShape{shape[0], 1, shape[1]}
                                                : ir::SymShape{num_elements(shape), 1, 1});
    };
    const V apart = centered(c, x, for_columns(scale_at + 1), DType::kInt32);
    return c.transpose(c.mul(c.cast(apart, DType::kFloat32), for_columns(scale_at)), {0, 2, 1});
  };
  std::vector<V> operands = {context.input(0), weights(1, 8), weights(2, 10)};
  for (size_t i = 3; i < 8; ++i) operands.push_back(context.optional_input(i));
  const std::vector<V> results = context.results_as("", "LSTM", operands);
  for (size_t i = 0; i < results.size(); ++i) context.set_output(i, results[i]);
}

// EmbedLayerNormalization of quantized tables, scale and bias, whose scales are operands 8 to 12 and zero
// points 13 to 17.
void convert_quantized_embed_layer_norm(NodeContext& context) {
  std::vector<V> operands = {context.input(0), context.optional_input(1)};
  for (size_t i = 2; i < 7; ++i) {
    const bool is_given = context.has_input(i);
    operands.push_back(is_given ? dequantized(context, context.input(i), context.input(i + 6),
                                              context.optional_input(i + 11))
                                : ir::kAbsent);
  }
  operands.push_back(context.optional_input(7));
  const std::vector<V> results = context.results_as("com.microsoft", "EmbedLayerNormalization", operands);
  for (size_t i = 0; i < results.size(); ++i) context.set_output(i, results[i]);
}

}  // namespace tensormill::frontend::onnx
