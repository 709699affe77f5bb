#include "compiler/frontend/tensorflow/converters/ranges.h"

#include <algorithm>
#include <cmath>

#include "compiler/build/numbers/quantize.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// float32 does not hold int32's largest integer.
constexpr double kLargestFloatInteger = 2147483520;

V is_point(Compose& c, const Range& range) { return c.binary("equal", range.low, range.high); }

/// In float64, of the difference in float32.
V span_of(Compose& c, const Range& range) { return c.cast(c.sub(range.high, range.low), DType::kFloat64); }

/// As many steps as there are integers: from the first to beyond the last.
V span_of_all(Compose& c, const Range& range, const Steps& steps) {
  return c.times(span_of(c, range), steps.count / (steps.count - 1));
}

}  // namespace

Range range_at(NodeContext& node, size_t low, size_t high) {
  Compose c(node);
  const auto end = [&](size_t operand) {
    const V value = node.input(operand);
    if (!ir::demand(ir::Relation::kEqual, num_elements(node.shape(value)), 1))
      node.invalid("the end of a range of shape " + to_string(node.shape(value)));
    return c.reshape(c.cast(value, DType::kFloat32), {});
  };
  return {end(low), end(high)};
}

Range range_at(NodeContext& node, size_t operand) { return range_at(node, operand, operand + 1); }

void set_range(NodeContext& node, size_t output, const Range& range) {
  node.set_output(output, range.low);
  node.set_output(output + 1, range.high);
}

Steps steps_of(const NodeContext& node, DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  if (!is_integer(dtype) || info.bits > 32)
    node.invalid("numbers of a range have type " + std::string(info.name));
  const double count = std::ldexp(1.0, info.bits), low = info.is_signed ? -count / 2 : 0;
  return {low, low + count - 1, count};
}

V real_numbers(NodeContext& node, V integers, const Range& range) {
  Compose c(node);
  const Steps steps = steps_of(node, node.dtype(integers));
  const V span = span_of(c, range);
  const V step = c.cast(c.div(span, c.number(span, steps.count - 1)), DType::kFloat32);
  const V whole = c.mul(build::round_away(node, c.div(range.low, step)), step);
  const V begin = c.sub(c.where(is_point(c, range), range.low, whole), c.times(step, steps.low));
  return c.add(begin, c.mul(c.cast(integers, DType::kFloat32), step));
}

V real_number(NodeContext& node, V integer, const Range& range) {
  Compose c(node);
  const Steps steps = steps_of(node, node.dtype(integer));
  const V span = span_of_all(c, range, steps);
  const V step = c.div(span, c.number(span, steps.count)), near_step = c.cast(step, DType::kFloat32);
  const V begin = c.mul(build::round_away(node, c.div(range.low, near_step)), near_step);
  const V known = c.cast(integer, DType::kFloat32);  // qint32 becomes no other type
  const V place = c.minus(c.cast(known, DType::kFloat64), steps.low);
  const V number = c.add(c.cast(begin, DType::kFloat64), c.mul(place, step));
  return c.where(is_point(c, range), range.low, c.cast(number, DType::kFloat32));
}

V nearest_integers(NodeContext& node, V x, const Range& range, DType to) {
  Compose c(node);
  const Steps steps = steps_of(node, to);
  const V span = span_of(c, range);
  const V scale = c.cast(c.div(c.number(span, steps.count - 1), span), DType::kFloat32);
  const V known = c.where(is_point(c, range), c.number(scale, 0), scale);
  const V begin = c.minus(build::round_away(node, c.mul(range.low, known)), steps.low);
  const V place = c.sub(build::round_away(node, c.mul(x, known)), begin);
  return c.cast(c.clip(place, steps.low, std::min(steps.high, kLargestFloatInteger)), to);
}

V place_of(NodeContext& node, double number, const Range& range, DType type, bool is_any) {
  Compose c(node);
  const Steps steps = steps_of(node, type);
  const V span = span_of_all(c, range, steps);
  const V scale = c.div(c.number(span, steps.count), span);
  const V low = build::round_away(node, c.mul(c.cast(range.low, DType::kFloat64), scale));
  const V place = c.plus(c.sub(build::round_away(node, c.times(scale, number)), low), steps.low);
  const V known = c.where(is_point(c, range), c.number(place, steps.low), place);
  return is_any ? known : c.clip(known, steps.low, steps.high);
}

V less_zero(NodeContext& node, V integers, const Range& range, DType wide) {
  Compose c(node);
  const V zero = place_of(node, 0, range, node.dtype(integers), true);
  return c.sub(c.cast(integers, wide), c.cast(zero, wide));
}

Range range_of_products(NodeContext& node, const Range& a, DType a_type, const Range& b, DType b_type) {
  Compose c(node);
  const auto step = [&](const Range& range, DType type) {
    const V span = c.sub(range.high, range.low);
    return c.div(span, c.number(span, steps_of(node, type).count - 1));
  };
  const V each = c.mul(step(a, a_type), step(b, b_type));
  const Steps sums = steps_of(node, DType::kInt32);
  return {c.times(each, sums.low), c.times(each, sums.high)};
}

}  // namespace tensormill::frontend::tensorflow
