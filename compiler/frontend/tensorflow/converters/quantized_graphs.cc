// Operators of graphs whose tensors are integers (quint8, qint8, qint32 ...), each beside the ends of the
// range of real numbers that it stands for.
#include <limits>

#include "compiler/build/maps/conv_pool.h"
#include "compiler/build/numbers/arithmetic.h"
#include "compiler/build/numbers/quantize.h"
#include "compiler/frontend/tensorflow/converters/ranges.h"
#include "compiler/frontend/tensorflow/converters/windows.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// The range of x, or along `axis`, where that is not negative, of each slice.
Range range_along(NodeContext& node, V x, int64_t axis) {
  if (axis < 0) return range_at(node, 1);
  Compose c(node);
  ir::SymShape along(node.shape(x).size(), 1);
  along[static_cast<size_t>(axis)] = node.shape(x)[static_cast<size_t>(axis)];
  const auto end = [&](size_t operand) {
    return c.reshape(c.cast(node.input(operand), DType::kFloat32), along);
  };
  return {end(1), end(2)};
}

int64_t axis_of(NodeContext& node, V x) {
  const int64_t axis = node.integer("axis", -1);
  return axis < 0 ? -1 : node.normalize_axis(axis, node.rank(x));
}

std::string mode_of(NodeContext& node) {
  const std::string mode = node.text("mode", "MIN_COMBINED");
  if (mode != "MIN_COMBINED" && mode != "MIN_FIRST" && mode != "SCALED")
    node.invalid("mode is \"" + mode + "\"");
  return mode;
}

/// Of a range around 0, which has an extent.
Range widened(NodeContext& node, const Range& given) {
  Compose c(node);
  const V zero = c.number(given.low, 0);
  const V low = c.binary("min", given.low, zero);
  const V size = c.binary("max", c.unary("abs", given.low), c.unary("abs", given.high));
  const double least = node.real("ensure_minimum_range", static_cast<double>(0.01F));
  const V apart = c.times(c.binary("max", size, c.number(size, 1)), least);
  return {low, c.binary("max", c.binary("max", given.high, c.add(low, apart)), zero)};
}

V within(Compose& c, V x, const Range& range) {
  return c.binary("max", c.binary("min", x, range.high), range.low);
}

/// Integers from the low end on.
V combined(NodeContext& node, V x, const Range& range, DType to) {
  Compose c(node);
  const Steps steps = steps_of(node, to);
  const V span = c.cast(c.sub(range.high, range.low), DType::kFloat64);
  const V scale = c.cast(c.div(c.number(span, steps.high - steps.low), span), DType::kFloat32);
  const V place = c.mul(c.sub(within(c, x, range), range.low), scale);
  const V whole = steps.low < 0 ? build::round_away(node, c.minus(place, steps.count / 2))
                                : c.unary("floor", c.plus(place, 0.5));
  return c.cast(whole, to);
}

/// Multiples of a step, of which 0 is one; the range becomes that of all of them.
V scaled(NodeContext& node, V x, Range& range, DType to, bool is_even, bool is_narrow) {
  Compose c(node);
  const Steps steps = steps_of(node, to);
  const double least = steps.low + (is_narrow ? 1 : 0);
  const V zero = c.number(range.low, 0),
          none = c.number(range.low, static_cast<double>(std::numeric_limits<float>::max()));
  const auto side = [&](double step, V end) {
    const V counts = c.binary("greater", c.times(end, step), zero);
    return c.where(counts, c.div(c.number(end, step), end), none);
  };
  const V scale = c.binary("min", side(least, range.low), side(steps.high, range.high));
  range = {c.div(c.number(scale, least), scale), c.div(c.number(scale, steps.high), scale)};
  const V place = c.mul(within(c, x, range), scale);
  return c.cast(is_even ? c.unary("round", place) : build::round_away(node, place), to);
}

}  // namespace

// Operands: x, the ends of its range. Results: integers, and the ends of the range that they are of.
void convert_quantize(NodeContext& node) {
  const V x = node.input(0);
  const DType to = node.dtype_attr("T");
  const std::string mode = mode_of(node), rounding = node.text("round_mode", "HALF_AWAY_FROM_ZERO");
  const bool is_even = rounding == "HALF_TO_EVEN", is_narrow = node.flag("narrow_range", false);
  if (!is_even && rounding != "HALF_AWAY_FROM_ZERO") node.invalid("round_mode is \"" + rounding + "\"");
  if (is_even && mode != "SCALED") node.invalid("round_mode is \"" + rounding + "\" in mode " + mode);
  Range range = widened(node, range_along(node, x, axis_of(node, x)));
  V integers = ir::kAbsent;
  if (mode == "SCALED") {
    integers = scaled(node, x, range, to, is_even, is_narrow);
  } else {
    integers = mode == "MIN_FIRST" ? nearest_integers(node, x, range, to) : combined(node, x, range, to);
  }
  node.set_output(0, integers);
  Compose c(node);
  const ir::SymShape ends = node.shape(node.input(1));
  set_range(node, 1, {c.reshape(range.low, ends), c.reshape(range.high, ends)});
}

// Operands: integers, the ends of their range.
void convert_dequantize(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const DType to = node.dtype_attr("dtype", DataType::kFloat);
  const std::string mode = mode_of(node);
  const bool is_narrow = node.flag("narrow_range", false);
  const Range range = range_along(node, x, axis_of(node, x));
  const Steps steps = steps_of(node, node.dtype(x));
  const V numbers = c.cast(x, DType::kFloat32);
  V y = ir::kAbsent;
  if (mode == "MIN_FIRST") {
    y = real_numbers(node, x, range);
  } else if (mode == "MIN_COMBINED") {
    const V span = c.sub(range.high, range.low);
    const V step = c.div(span, c.number(span, steps.high - steps.low));
    const V places = steps.low < 0 ? c.plus(numbers, steps.count / 2) : numbers;
    y = c.add(c.mul(places, step), range.low);
  } else {
    V step = c.div(range.high, c.number(range.high, steps.high));
    const double least = steps.low + (is_narrow ? 1 : 0);
    if (steps.low < 0) step = c.binary("max", c.div(range.low, c.number(range.low, least)), step);
    y = c.mul(numbers, step);
  }
  node.set_output(0, c.cast(y, to));
}

// Operands: a map, filters [H,W,I,O], the ends of both ranges. The sums are exact.
void convert_quantized_conv_2d(NodeContext& node) {
  Compose c(node);
  for (const size_t operand : {0, 1}) check_rank(node, node.input(operand), 4, "an operand");
  if (!node.ints("padding_list", std::vector<int64_t>()).empty())
    node.unsupported("padding_list", "pads that are listed are not implemented");
  const V x = node.input(0), filters = node.input(1);
  const ir::SymShape w = node.shape(filters);
  if (!w.is_constant()) node.invalid("filters of shape " + to_string(w));
  const Range x_range = range_at(node, 2), w_range = range_at(node, 4);
  const V map = node.first(x);
  build::ConvSpec spec;
  spec.windows = windows_of(node, map, {w[0].hint(), w[1].hint()}, spatial(node, "strides", 2, false, false),
                            spatial(node, "dilations", 2, true, false), false);
  spec.exact = true;
  const V weights = node.weights(filters, {3, 2, 0, 1}, {w[3], w[2], w[0], w[1]});
  const V sums = build::conv(node, less_zero(node, map, x_range, DType::kFloat64),
                             less_zero(node, weights, w_range, DType::kFloat64), ir::kAbsent, spec);
  node.set_output(0, node.last(c.cast(c.cast(sums, DType::kInt64), DType::kInt32)));
  set_range(node, 1, range_of_products(node, x_range, node.dtype(x), w_range, node.dtype(filters)));
}

// Operands: matrices, the ends of both ranges.
void convert_quantized_matmul(NodeContext& node) {
  Compose c(node);
  const auto matrix = [&](size_t operand, const char* turns) {
    const V given = node.input(operand);
    check_rank(node, given, 2, "an operand");
    const V centered = less_zero(node, given, range_at(node, 2 + 2 * operand), DType::kInt32);
    return node.flag(turns, false) ? c.transpose(centered, {1, 0}) : centered;
  };
  const V a = matrix(0, "transpose_a");
  node.set_output(0, c.matmul(a, matrix(1, "transpose_b")));
  set_range(node, 1,
            range_of_products(node, range_at(node, 2), node.dtype(node.input(0)), range_at(node, 4),
                              node.dtype(node.input(1))));
}

// Operands: two tensors that broadcast, the ends of both ranges.
void convert_quantized_mul(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0), y = node.input(1);
  const Range x_range = range_at(node, 2), y_range = range_at(node, 4);
  node.set_output(
      0, c.mul(less_zero(node, x, x_range, DType::kInt32), less_zero(node, y, y_range, DType::kInt32)));
  set_range(node, 1, range_of_products(node, x_range, node.dtype(x), y_range, node.dtype(y)));
}

// Operands: integers, a row, the ends of both ranges. The sum is of a range in which both are fine steps.
void convert_quantized_bias_add(NodeContext& node) {
  Compose c(node);
  constexpr double kRoom = 1 << 17;
  const V x = node.input(0);
  check_rank(node, node.input(1), 1, "the bias");
  const Range own = range_at(node, 2), other = range_at(node, 4);
  const auto most = [&](const Range& range) {
    return c.binary("max", range.high, c.unary("neg", range.low));
  };
  const V high = c.times(c.binary("max", most(own), most(other)), kRoom);
  const Range sum{c.unary("neg", high), high};
  const auto in_sum = [&](V integers, const Range& range) {
    return nearest_integers(node, real_numbers(node, integers, range), sum, DType::kInt32);
  };
  // The kernel adds what 0 is: 0, or -1 where float64 makes less than a half of the low end's fraction.
  const V zero = c.cast(place_of(node, 0, sum, DType::kInt32, false), DType::kInt32);
  const V added = c.add(in_sum(node.input(1), other), zero);
  const V addends = node.pointwise(x, [&](V each) { return in_sum(each, own); });
  node.set_output(0, node.binary("add", addends, added));
  set_range(node, 1, sum);
}

// Operands: integers, the ends of their range, which stays.
void convert_quantized_relu(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const Range range = range_at(node, 1);
  const auto bound = [&](double number) {
    return c.cast(place_of(node, number, range, node.dtype(x), false), node.dtype(x));
  };
  V y = node.binary("max", x, bound(0));
  if (node.op() == "QuantizedRelu6") y = node.binary("min", y, bound(6));
  node.set_output(0, y);
  set_range(node, 1, range);
}

namespace {

/// uint8 of int32, which are float32 on the way: TensorFlow's qint32 becomes no other type.
V in_fixed_point(NodeContext& node, V x, const Range& from, const Range& to) {
  Compose c(node);
  constexpr double kPoint = 65536, kMost = 255;
  const auto wide = [&](V each) { return c.cast(each, DType::kFloat64); };
  const V span = wide(c.sub(to.high, to.low)), is_point = c.binary("equal", span, c.number(span, 0));
  const auto whole = [&](V each) {
    return c.cast(c.where(is_point, c.number(each, 0), each), DType::kInt64);
  };
  const V factor = whole(c.div(c.times(wide(c.sub(from.high, from.low)), kMost * kPoint), span));
  const V middle = c.cast(c.times(wide(c.add(from.low, from.high)), 0.5), DType::kFloat32);
  const V per_unit = c.cast(c.div(c.number(span, kMost), span), DType::kFloat32);
  const V center = whole(c.times(c.mul(middle, per_unit), kPoint));
  const V begin = whole(build::round_away(node, c.div(c.times(wide(to.low), kMost * kPoint), span)));
  const V shift = c.plus(c.sub(center, begin), kPoint / 2);
  return node.pointwise(x, [&](V each) {
    const V scaled = c.mul(c.cast(c.cast(each, DType::kFloat32), DType::kInt64), factor);
    const V place = c.add(build::right_shift(node, scaled, c.number(scaled, 32)), shift);
    return c.cast(c.clip(build::right_shift(node, place, c.number(place, 16)), 0, kMost), DType::kUInt8);
  });
}

/// Integers of `from` as those of `to`. int32 becomes uint8 in the fixed point of TensorFlow's kernel, 16
/// bits behind the point, which may differ by one from the nearest integer.
V moved(NodeContext& node, V x, const Range& from, const Range& to, DType type) {
  if (node.dtype(x) == DType::kInt32 && type == DType::kUInt8) return in_fixed_point(node, x, from, to);
  return node.pointwise(
      x, [&](V each) { return nearest_integers(node, real_numbers(node, each, from), to, type); });
}

/// The range of the integers that are there.
Range used_range(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const Range range = range_at(node, 1);
  const auto end = [&](const char* op) {
    return real_number(node, c.reduce(op, x, c.count_to(node.rank(x)), false), range);
  };
  const V low = end("reduce_min");
  return {c.binary("min", low, c.number(low, 0)), end("reduce_max")};
}

}  // namespace

// Operands: int32, the ends of their range, those of the range of the result.
void convert_requantize(NodeContext& node) {
  const Range range = range_at(node, 3);
  node.set_output(0, moved(node, node.input(0), range_at(node, 1), range, node.dtype_attr("out_type")));
  set_range(node, 1, range);
}

void convert_requantization_range(NodeContext& node) { set_range(node, 0, used_range(node)); }

// Operands: int32, the ends of their range.
void convert_quantize_down(NodeContext& node) {
  const DType type = node.dtype_attr("out_type");
  if (type != DType::kUInt8) node.unsupported("out_type", "other types than quint8 are not implemented");
  const Range range = used_range(node);
  node.set_output(0, moved(node, node.input(0), range_at(node, 1), range, type));
  set_range(node, 1, range);
}

// Operands: the axis, values, the low ends of their ranges, the high ends.
void convert_quantized_concat(NodeContext& node) {
  Compose c(node);
  const size_t count = node.num_inputs() / 3;
  if (count == 0 || node.num_inputs() != 3 * count + 1)
    node.invalid("it has " + std::to_string(node.num_inputs()) + " operands");
  std::vector<Range> ranges;
  for (size_t i = 0; i < count; ++i) ranges.push_back(range_at(node, 1 + count + i, 1 + 2 * count + i));
  Range all{c.number(ranges[0].low, 0), ranges[0].high};
  for (const Range& each : ranges)
    all = {c.binary("min", all.low, each.low), c.binary("max", all.high, each.high)};
  const DType type = node.dtype(node.input(1));
  if (steps_of(node, type).low < 0) {
    const V most = c.binary("max", c.unary("abs", all.low), c.unary("abs", all.high));
    all = {c.unary("neg", most), most};
  }
  std::vector<V> parts;
  for (size_t i = 0; i < count; ++i) {
    const V x = node.input(1 + i);
    if (node.dtype(x) != type) node.invalid("values of several types");
    const V is_same = c.binary("and", c.binary("equal", ranges[i].low, all.low),
                               c.binary("equal", ranges[i].high, all.high));
    parts.push_back(c.where(is_same, x, moved(node, x, ranges[i], all, type)));
  }
  const int64_t axis = node.normalize_axis(node.known_int(0, "concat_dim"), node.rank(parts[0]));
  node.set_output(0, c.concat(parts, axis));
  set_range(node, 1, all);
}

// Operands: a tensor, its shape, the ends of its range, which stays.
void convert_quantized_reshape(NodeContext& node) {
  convert_reshape(node);
  set_range(node, 1, range_at(node, 2));
}

}  // namespace tensormill::frontend::tensorflow
