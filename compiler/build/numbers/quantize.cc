#include "compiler/build/numbers/quantize.h"

#include "runtime/base/narrow.h"

namespace tensormill::build {

namespace {

struct Range {
  double low;
  double high;
};

Range range_of(const OpBuilder& builder, DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  if (is_float(dtype) || info.bits > 32)
    builder.unsupported("y_zero_point", "type " + std::string(info.name));
  const double span = static_cast<double>(int64_t{1} << value_bits(dtype));
  return info.is_signed ? Range{-span / 2, span / 2 - 1} : Range{0, span - 1};
}

}  // namespace

// What is left behind the whole part is exact, where x + 1/2 may be rounded.
ir::ValueId round_away(OpBuilder& builder, ir::ValueId x) {
  Compose c(builder);
  const ir::ValueId size = c.unary("abs", x), whole = c.unary("floor", size);
  const ir::ValueId is_up = c.binary("greater_equal", c.sub(size, whole), c.number(x, 0.5));
  const ir::ValueId rounded = c.where(is_up, c.plus(whole, 1), whole);
  return c.where(c.binary("less", x, c.number(x, 0)), c.unary("neg", rounded), rounded);
}

ir::ValueId centered(Compose& c, ir::ValueId x, ir::ValueId zero, DType wide) {
  const ir::ValueId value = c.cast(x, wide);
  return zero == ir::kAbsent ? value : c.sub(value, c.cast(zero, wide));
}

ir::ValueId dequantize(OpBuilder& builder, ir::ValueId x, ir::ValueId scale, ir::ValueId zero) {
  Compose c(builder);
  // float32 holds 16 bits and their differences.
  const bool is_wide = dtype_info(c.dtype(x)).bits > 16;
  const ir::ValueId integer = centered(c, x, zero, is_wide ? DType::kInt64 : DType::kFloat32);
  return c.mul(c.cast(integer, DType::kFloat32), scale);
}

ir::ValueId quantize(OpBuilder& builder, ir::ValueId x, ir::ValueId scale, ir::ValueId zero, DType to) {
  Compose c(builder);
  const Range range = range_of(builder, to);
  // float32 does not hold all of int16 and int32 beside a fraction.
  const DType wide = dtype_info(to).bits > 8 ? DType::kFloat64 : c.dtype(x);
  ir::ValueId value = c.cast(c.unary("round", c.div(x, scale)), wide);
  if (zero != ir::kAbsent) value = c.add(value, c.cast(zero, wide));
  // A conversion to a whole type of 8 bits saturates by itself.
  const bool whole = !is_narrow(to) && dtype_info(to).bits == 8;
  return c.cast(whole ? value : c.clip(value, range.low, range.high), to);
}

}  // namespace tensormill::build
