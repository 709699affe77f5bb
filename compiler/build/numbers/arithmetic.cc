#include "compiler/build/numbers/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "compiler/build/compose.h"
#include "runtime/base/error.h"

namespace tensormill::build {

using V = ir::ValueId;

V floor_mod(OpBuilder& builder, ChannelsLast& maps, V x, V y) {
  if (!is_float(builder.type(x).dtype))
    return maps.elementwise(builder, "mod", {x, y}, {{"fmod", int64_t{0}}});
  const V rest = maps.elementwise(builder, "mod", {x, y}, {{"fmod", int64_t{1}}});
  const V zero = builder.scalar_like(x, 0);
  const V is_other = maps.elementwise(
      builder, "xor",
      {maps.elementwise(builder, "less", {rest, zero}), maps.elementwise(builder, "less", {y, zero})});
  const V is_moved = maps.elementwise(
      builder, "and",
      {is_other, maps.elementwise(builder, "not", {maps.elementwise(builder, "equal", {rest, zero})})});
  return maps.elementwise(builder, "where", {is_moved, maps.elementwise(builder, "add", {rest, y}), rest});
}

V floor_div(OpBuilder& builder, ChannelsLast& maps, V x, V y) {
  if (is_float(builder.type(x).dtype))
    return maps.elementwise(builder, "floor", {maps.elementwise(builder, "div", {x, y})});
  // Integers divide toward zero; without the rest there is nothing to round.
  const V whole = maps.elementwise(builder, "sub", {x, floor_mod(builder, maps, x, y)});
  return maps.elementwise(builder, "div", {whole, y});
}

V atan2(OpBuilder& builder, V y, V x) {
  Compose c(builder);
  const V zero = c.number(x, 0);
  constexpr double kPi = std::numbers::pi;
  const auto has = [&](const char* op, V value) { return c.binary(op, value, zero); };
  const V angle = c.unary("atan", c.div(y, x));
  const V half = c.where(has("less", y), c.number(x, -kPi), c.number(x, kPi));
  const V left = c.add(angle, half);
  const V upright =
      c.where(has("less", y), c.number(x, -kPi / 2), c.where(has("greater", y), c.number(x, kPi / 2), zero));
  return c.where(has("greater", x), angle, c.where(has("less", x), left, upright));
}

// Scaled by the larger part.
V hypotenuse(OpBuilder& builder, V x, V y) {
  Compose c(builder);
  const V a = c.unary("abs", x), b = c.unary("abs", y);
  const V large = c.binary("max", a, b), small = c.binary("min", a, b);
  const V is_zero = c.binary("equal", large, c.number(large, 0));
  const V ratio = c.div(small, c.where(is_zero, c.number(large, 1), large));
  const V length = c.mul(large, c.unary("sqrt", c.plus(c.mul(ratio, ratio), 1)));
  // Whatever stands beside what is infinite.
  const V infinity = c.number(large, std::numeric_limits<double>::infinity());
  const V is_infinite = c.binary("or", c.binary("equal", a, infinity), c.binary("equal", b, infinity));
  return c.where(is_infinite, infinity, length);
}

namespace {

/// The least and the greatest number of steps.
std::pair<float, float> steps_of(const OpBuilder& builder, const FakeQuantSpec& spec) {
  if (spec.bits < 2 || spec.bits > 16) builder.invalid("num_bits is " + std::to_string(spec.bits));
  return {spec.narrow_range ? 1.0F : 0.0F, static_cast<float>((int64_t{1} << spec.bits) - 1)};
}

}  // namespace

V fake_quant(OpBuilder& builder, V x, V min, V max, const FakeQuantSpec& spec) {
  Compose c(builder);
  const auto [low, high] = steps_of(builder, spec);
  const auto number = [&](float value) { return c.number(min, static_cast<double>(value)); };
  const V is_none = c.binary("and", c.binary("equal", min, number(0)), c.binary("equal", max, number(0)));
  const V scale = c.where(is_none, number(1), c.div(c.sub(max, min), number(high - low)));
  const V given =
      c.clip(c.sub(number(low), c.div(min, scale)), static_cast<double>(low), static_cast<double>(high));
  // Half away from zero: of what is not negative, and in a wider type, in which the half is added exactly.
  const V zero = c.cast(c.unary("floor", c.plus(c.cast(given, DType::kFloat64), 0.5)), DType::kFloat32);
  const V least = c.mul(c.sub(number(low), zero), scale), most = c.mul(c.sub(number(high), zero), scale);
  const V inside = c.binary("max", c.binary("min", x, most), least);
  const V steps = c.unary("round", c.div(c.sub(inside, least), scale));
  return c.where(is_none, c.number(x, 0), c.add(c.mul(steps, scale), least));
}

V fake_quant(OpBuilder& builder, ChannelsLast& maps, V x, const FakeQuantSpec& spec) {
  const auto [low, high] = steps_of(builder, spec);
  const float scale = (spec.max - spec.min) / (high - low);
  if (!(scale > 0) || !std::isfinite(scale)) builder.invalid("a range without extent");
  const float zero = std::clamp(std::round(low - spec.min / scale), low, high);
  const auto least = static_cast<double>((low - zero) * scale),
             most = static_cast<double>((high - zero) * scale);
  const auto number = [&](double value) { return builder.scalar_like(x, value); };
  const V inside = maps.elementwise(builder, "clip", {x, number(least), number(most)});
  const V step = number(static_cast<double>(scale));
  const V steps =
      maps.elementwise(builder, "div", {maps.elementwise(builder, "sub", {inside, number(least)}), step});
  const V rounded = maps.elementwise(builder, "mul", {maps.elementwise(builder, "round", {steps}), step});
  return maps.elementwise(builder, "add", {rounded, number(least)});
}

namespace {

DType unsigned_of(size_t bytes) {
  if (bytes == 1) return DType::kUInt8;
  if (bytes == 2) return DType::kUInt16;
  return bytes == 4 ? DType::kUInt32 : DType::kUInt64;
}

V as_bits(OpBuilder& builder, V x, DType to) {
  return builder.type(x).dtype == to ? x : builder.add("bit_cast", {x}, {{"to", to}});
}

V shifted(OpBuilder& builder, V x, V by, const char* direction) {
  return builder.add("bit_shift", {x, by}, {{"direction", std::string(direction)}});
}

void check_integers(const OpBuilder& builder, V x) {
  if (!is_integer(builder.type(x).dtype))
    builder.invalid("elements of type " + std::string(dtype_long_name(builder.type(x).dtype)));
}

}  // namespace

V right_shift(OpBuilder& builder, V x, V given) {
  Compose c(builder);
  check_integers(builder, x);
  check_integers(builder, given);
  const DType dtype = c.dtype(x), bits = unsigned_of(dtype_bytes(dtype));
  const auto most = static_cast<double>(dtype_bytes(dtype) * 8 - 1);
  const V by = c.cast(c.clip(c.cast(given, DType::kInt64), 0, most), bits);
  if (dtype == bits) return shifted(builder, x, by, "right");
  const V is_negative = c.binary("less", x, c.number(x, 0));
  const V upright = as_bits(builder, c.where(is_negative, c.unary("not", x), x), bits);
  const V moved = as_bits(builder, shifted(builder, upright, by, "right"), dtype);
  return c.where(is_negative, c.unary("not", moved), moved);
}

V left_shift(OpBuilder& builder, V x, V by) {
  check_integers(builder, x);
  check_integers(builder, by);
  const DType dtype = builder.type(x).dtype, bits = unsigned_of(dtype_bytes(dtype));
  if (builder.type(by).dtype != dtype) builder.invalid("operands of different types");
  const V moved = shifted(builder, as_bits(builder, x, bits), as_bits(builder, by, bits), "left");
  return as_bits(builder, moved, dtype);
}

V bitcast(OpBuilder& builder, V x, DType to) {
  Compose c(builder);
  const DType from = c.dtype(x);
  const size_t wide = dtype_bytes(from), narrow = dtype_bytes(to);
  if ((from == DType::kBool) != (to == DType::kBool)) builder.invalid("bools have no bits of other types");
  if (wide == narrow) return as_bits(builder, x, to);
  const DType from_bits = unsigned_of(wide), to_bits = unsigned_of(narrow);
  const V bits = as_bits(builder, x, from_bits);
  const int64_t last = builder.rank(x);
  if (wide > narrow) {
    std::vector<V> parts;
    for (size_t i = 0; i < wide / narrow; ++i) {
      const V part = shifted(builder, bits, c.number(bits, static_cast<double>(8 * narrow * i)), "right");
      parts.push_back(c.unsqueeze(c.cast(part, to_bits), last));
    }
    return as_bits(builder, c.concat(parts, last), to);
  }
  const auto count = static_cast<int64_t>(narrow / wide);
  if (last == 0 || !same(c.shape(x).back(), count))
    builder.invalid("a last axis of " + to_string(c.shape(x)) + ", expected " + std::to_string(count));
  V whole = ir::kAbsent;
  for (int64_t i = 0; i < count; ++i) {
    const V part = c.cast(c.squeeze(c.slice(bits, last - 1, i, 1), last - 1), to_bits);
    const V moved = shifted(builder, part,
                            c.number(part, static_cast<double>(8 * static_cast<int64_t>(wide) * i)), "left");
    whole = whole == ir::kAbsent ? moved : c.binary("or", whole, moved);
  }
  return as_bits(builder, whole, to);
}

}  // namespace tensormill::build
