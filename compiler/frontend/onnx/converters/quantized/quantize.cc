// Quantized operators. Integer products are summed exactly: in int32 (matmul), in float32 where the weights
// say that it holds the sums (exact_conv.cc), or in float64, whose 53 bits hold any sum that fits int32.
#include "compiler/frontend/onnx/converters/quantized/quantize.h"

#include "compiler/frontend/onnx/converters/converters.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

/// A scale or zero point for data of `shape`: one value, one an axis element, or one a block of the axis.
ir::ValueId aligned(NodeContext& context, ir::ValueId value, const ir::SymShape& shape, int64_t axis) {
  Compose c(context);
  const ir::SymShape have = c.shape(value);
  if (num_elements(have) == 1 && have.size() <= 1) return c.reshape(value, {});
  const size_t at = static_cast<size_t>(axis);
  if (have.size() == 1) {
    if (have[0] != shape[at])
      context.invalid("a scale or zero point has " + std::to_string(have[0]) + " values for an axis of " +
                      std::to_string(shape[at]));
    ir::SymShape along(shape.size(), 1);
    along[at] = have[0];
    return c.reshape(value, along);
  }
  const int64_t block = context.int_attr("block_size", 0);
  if (have.size() != shape.size() || block < 1) context.invalid("scale of shape " + to_string(have));
  ir::Ints from = c.count_to(shape[at]);
  for (int64_t& i : from) i /= block;
  return c.gather(value, c.ints(from, {shape[at]}), axis);
}

int64_t axis_of(const NodeContext& context, ir::ValueId x) {
  const int64_t rank = context.rank(x);
  return rank == 0 ? 0 : context.normalize_axis(rank == 1 ? 0 : context.int_attr("axis", 1), rank);
}

}  // namespace

ir::ValueId per_line(Compose& c, ir::ValueId value, bool rows) {
  if (value == ir::kAbsent) return value;
  const ir::SymShape have = c.shape(value);
  if (have.size() != 1) return value;
  if (have[0] == 1) return c.reshape(value, {});
  return rows ? c.reshape(value, {have[0], 1}) : value;
}

ir::ValueId quantized(NodeContext& context, ir::ValueId x, ir::ValueId scale, ir::ValueId zero, DType to) {
  Compose c(context);
  if (is_narrow(to) && is_float(to)) {
    // Nothing but 0 is a zero point of these, and rounding is the conversion's.
    const ir::Attrs attrs{{"to", to}, {"saturate", context.int_attr("saturate", 1)}};
    return context.add("cast", {c.div(x, scale)}, attrs);
  }
  return build::quantize(context, x, scale, zero, to);
}

ir::ValueId dequantized(NodeContext& context, ir::ValueId x, ir::ValueId scale, ir::ValueId zero) {
  Compose c(context);
  const ir::ValueId zero_point = zero == ir::kAbsent ? zero : c.reshape(zero, {});
  const ir::ValueId integer = c.cast(centered(c, x, zero_point, DType::kInt32), DType::kFloat32);
  return c.mul(integer, c.reshape(c.cast(scale, DType::kFloat32), {}));
}

namespace {

/// As [1,C,1...] where it has one value a channel.
ir::ValueId per_channel(Compose& c, ir::ValueId value, size_t rank, size_t at) {
  if (value == ir::kAbsent) return value;
  const ir::SymInt count = num_elements(c.shape(value));
  ir::SymShape along(count == 1 ? 0 : rank, 1);
  if (count != 1) along[at] = count;
  return c.reshape(value, along);
}

/// The int32 sums of a convolution of x - x_zero and w - w_zero, as float64.
ir::ValueId integer_conv(NodeContext& context, ir::ValueId x, ir::ValueId x_zero, ir::ValueId w,
                         ir::ValueId w_zero) {
  Compose c(context);
  const size_t rank = c.shape(w).size();
  const ir::ValueId exact = exact_convolution(context, x, x_zero, w, w_zero);
  if (exact != ir::kAbsent) return exact;
  return convolution(context, centered(c, x, per_channel(c, x_zero, rank, 1), DType::kFloat64),
                     centered(c, w, per_channel(c, w_zero, rank, 0), DType::kFloat64), ir::kAbsent);
}

/// The type in which QuantizeLinear divides: attribute precision, else (since opset 23) the scale's.
DType division_dtype(const NodeContext& context, DType x, DType scale) {
  if (context.int_attr("precision", 0) != 0) {
    const DType precision = context.dtype_attr("precision");
    if (!is_float(precision) || is_narrow(precision))
      context.unsupported("precision", "type " + std::string(dtype_name(precision)));
    return precision;
  }
  if (context.opset() >= 23 && is_float(scale) && !is_narrow(scale)) return scale;
  return x == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

}  // namespace

void convert_quantize_linear(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  DType to = DType::kUInt8;
  if (context.has_attr("output_dtype") && context.int_attr("output_dtype", 0) != 0)
    to = context.dtype_attr("output_dtype");
  if (context.has_input(2)) to = c.dtype(context.input(2));
  const ir::SymShape shape = c.shape(x);
  const int64_t axis = axis_of(context, x);
  const DType wide = division_dtype(context, c.dtype(x), c.dtype(context.input(1)));
  const ir::ValueId scale = c.cast(aligned(context, context.input(1), shape, axis), wide);
  const ir::ValueId zero =
      context.has_input(2) ? aligned(context, context.input(2), shape, axis) : ir::kAbsent;
  context.set_output(0, quantized(context, c.cast(x, wide), scale, zero, to));
}

void convert_dequantize_linear(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const ir::SymShape shape = c.shape(x);
  const int64_t axis = axis_of(context, x);
  const ir::ValueId scale = aligned(context, context.input(1), shape, axis);
  const ir::ValueId zero =
      context.has_input(2) ? aligned(context, context.input(2), shape, axis) : ir::kAbsent;
  DType to = is_narrow(c.dtype(scale)) ? DType::kFloat32 : c.dtype(scale);
  if (context.int_attr("output_dtype", 0) != 0) to = context.dtype_attr("output_dtype");
  // float32 holds 16 bits and their differences.
  const bool is_wide = is_integer(c.dtype(x)) && dtype_info(c.dtype(x)).bits > 16;
  const ir::ValueId integer = centered(c, x, zero, is_wide ? DType::kInt64 : DType::kFloat32);
  context.set_output(0, c.cast(c.mul(c.cast(integer, DType::kFloat32), c.cast(scale, DType::kFloat32)), to));
}

// scale = (max(x, 0) - min(x, 0)) / 255, zero = round(-min / scale)
DynamicQuantized dynamic_quantized(NodeContext& context, ir::ValueId x) {
  Compose c(context);
  const ir::ValueId nothing = c.number(x, 0);
  const ir::ValueId flat = c.reshape(x, {num_elements(c.shape(x))});
  const ir::ValueId high = c.binary("max", c.reduce("reduce_max", flat, {0}, false), nothing);
  const ir::ValueId low = c.binary("min", c.reduce("reduce_min", flat, {0}, false), nothing);
  const ir::ValueId scale = c.div(c.sub(high, low), c.number(x, 255));
  const ir::ValueId zero_value = c.unary("round", c.clip(c.div(c.unary("neg", low), scale), 0, 255));
  const ir::ValueId zero = c.cast(zero_value, DType::kUInt8);
  return {quantized(context, x, scale, zero, DType::kUInt8), scale, zero};
}

void convert_dynamic_quantize_linear(NodeContext& context) {
  const DynamicQuantized result = dynamic_quantized(context, context.input(0));
  context.set_output(0, result.values);
  context.set_output(1, result.scale);
  context.set_output(2, result.zero);
}

void convert_matmul_integer(NodeContext& context) {
  Compose c(context);
  const ir::ValueId a =
      centered(c, context.input(0), per_line(c, context.optional_input(2), true), DType::kInt32);
  const ir::ValueId b =
      centered(c, context.input(1), per_line(c, context.optional_input(3), false), DType::kInt32);
  context.set_output(0, c.matmul(a, b));
}

void convert_conv_integer(NodeContext& context) {
  Compose c(context);
  const ir::ValueId sums = integer_conv(context, context.input(0), context.optional_input(2),
                                        context.input(1), context.optional_input(3));
  context.set_output(0, c.cast(sums, DType::kInt32));
}

void convert_qlinear_matmul(NodeContext& context) {
  Compose c(context);
  const ir::ValueId a = centered(c, context.input(0), per_line(c, context.input(2), true), DType::kInt32);
  const ir::ValueId b = centered(c, context.input(3), per_line(c, context.input(5), false), DType::kInt32);
  const ir::ValueId sums = c.cast(c.matmul(a, b), DType::kFloat32);
  const ir::ValueId a_scale = c.cast(per_line(c, context.input(1), true), DType::kFloat32);
  const ir::ValueId b_scale = c.cast(per_line(c, context.input(4), false), DType::kFloat32);
  const ir::ValueId scaled = c.mul(c.mul(sums, a_scale), b_scale);
  const ir::ValueId y_scale = c.cast(per_line(c, context.input(6), true), DType::kFloat32);
  context.set_output(
      0, quantized(context, scaled, y_scale, per_line(c, context.input(7), true), c.dtype(context.input(7))));
}

void convert_qlinear_conv(NodeContext& context) {
  Compose c(context);
  const size_t rank = c.shape(context.input(3)).size();
  ir::ValueId sums =
      integer_conv(context, context.input(0), context.input(2), context.input(3), context.input(5));
  if (context.has_input(8))
    sums = c.add(sums, c.cast(per_channel(c, context.input(8), rank, 1), DType::kFloat64));
  const ir::ValueId w_scale = c.cast(per_channel(c, context.input(4), rank, 1), DType::kFloat64);
  const ir::ValueId x_scale = c.cast(per_channel(c, context.input(1), rank, 1), DType::kFloat64);
  const ir::ValueId y_scale = c.cast(per_channel(c, context.input(6), rank, 1), DType::kFloat64);
  const ir::ValueId scaled = c.mul(sums, c.mul(x_scale, w_scale));
  context.set_output(0, quantized(context, scaled, y_scale, per_channel(c, context.input(7), rank, 1),
                                  c.dtype(context.input(7))));
}

}  // namespace tensormill::frontend::onnx
