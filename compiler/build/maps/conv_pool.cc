#include "compiler/build/maps/conv_pool.h"

#include <cmath>
#include <limits>

#include "compiler/build/compose.h"
#include "compiler/build/numbers/arithmetic.h"

namespace tensormill::build {

namespace {

ir::Attrs pool_attrs(const PoolSpec& spec) {
  return {{"kernel", spec.windows.kernel},
          {"strides", spec.windows.strides},
          {"dilations", spec.windows.dilations},
          {"pads", spec.windows.pads},
          {"ceil_mode", int64_t{spec.ceil_mode}}};
}

}  // namespace

namespace {

/// What windows of padding "same" make of a map that has an axis without elements, of so many channels: as
/// many windows as strides, which are none, though a window of padding alone would fit. Nothing for other
/// maps.
std::optional<ir::ValueId> nothing_of(OpBuilder& builder, ir::ValueId x, const Windows& windows,
                                      const ir::SymInt& channels) {
  const ir::ValueType type = builder.type(x);
  ir::SymShape to{type.shape[0], channels};
  bool is_empty = false;
  for (size_t d = 0; d < windows.strides.size(); ++d) {
    const ir::SymInt& extent = type.shape[d + 2];
    is_empty = is_empty || same(extent, 0);
    to.push_back(ceildiv(extent, windows.strides[d]));
  }
  if (!windows.same || !is_empty) return std::nullopt;
  return Compose(builder).filled(type.dtype, to, 0);
}

}  // namespace

ir::ValueId exact_sums(OpBuilder& builder, ir::ValueId x, ir::ValueId w, const ir::SymInt& terms,
                       const std::function<ir::ValueId(ir::ValueId x, ir::ValueId w)>& sums) {
  Compose c(builder);
  const DType dtype = c.dtype(x);
  if (is_float(dtype)) return sums(x, w);
  const int bits = dtype_info(dtype).bits;
  if (bits > 32) builder.unsupported("operands", "integers of 64 bits are not implemented");
  // float64 holds whole numbers up to 2^53: those of two operands of 16 bits, and of the sum of two such.
  if (!ir::demand(ir::Relation::kLessEqual, terms, int64_t{1} << 20))
    builder.unsupported("operands", "sums of so many integers are not implemented");
  const auto wide = [&](ir::ValueId value) { return c.cast(value, DType::kFloat64); };
  const auto whole = [&](ir::ValueId sum) { return c.cast(sum, DType::kInt64); };
  if (bits <= 16) return c.cast(whole(sums(wide(x), wide(w))), dtype);
  struct Halves {
    ir::ValueId high, low;
  };
  const auto halves = [&](ir::ValueId value) {
    const ir::ValueId high = right_shift(builder, value, c.number(value, 16));
    return Halves{wide(high), wide(c.sub(value, c.times(high, 65536)))};
  };
  // What the high halves make of each other is a multiple of 2^32.
  const Halves a = halves(x), b = halves(w);
  const ir::ValueId mixed = c.add(whole(sums(a.high, b.low)), whole(sums(a.low, b.high)));
  return c.cast(c.add(c.times(mixed, 65536), whole(sums(a.low, b.low))), dtype);
}

ir::ValueId conv(OpBuilder& builder, ir::ValueId x, ir::ValueId w, ir::ValueId bias, ConvSpec spec) {
  if (const auto none = nothing_of(builder, x, spec.windows, builder.type(w).shape[0])) return *none;
  const DType dtype = builder.type(x).dtype;
  const ir::ValueId padded = padded_for(builder, x, spec.windows, 0);
  ir::Attrs attrs{{"strides", spec.windows.strides},
                  {"dilations", spec.windows.dilations},
                  {"pads", spec.windows.pads},
                  {"group", spec.groups}};
  if (spec.exact || !is_float(dtype)) attrs.set("exact", int64_t{1});
  const bool adds_bias = bias != ir::kAbsent && !is_float(dtype);
  const auto sums = [&](ir::ValueId data, ir::ValueId weights) {
    std::vector<ir::ValueId> inputs{data, weights};
    if (bias != ir::kAbsent && !adds_bias) inputs.push_back(bias);
    return builder.add("conv", std::move(inputs), attrs);
  };
  const ir::SymShape shape = builder.type(w).shape;
  const ir::SymInt terms = num_elements(ir::SymShape(shape.begin() + 1, shape.end()));
  const ir::ValueId y = exact_sums(builder, padded, w, terms, sums);
  if (!adds_bias) return y;
  Compose c(builder);
  ir::SymShape along(shape.size(), 1);
  along[1] = shape[0];
  return c.add(y, c.reshape(bias, along));
}

ir::ValueId max_pool(OpBuilder& builder, ir::ValueId x, PoolSpec spec) {
  if (const auto none = nothing_of(builder, x, spec.windows, builder.type(x).shape[1])) return *none;
  const DType dtype = builder.type(x).dtype;
  const DTypeInfo& info = dtype_info(dtype);
  const double least = is_float(dtype)  ? -std::numeric_limits<double>::infinity()
                       : info.is_signed ? -std::ldexp(1.0, info.bits - 1)
                                        : 0;
  x = padded_for(builder, x, spec.windows, least);
  return builder.add("max_pool", {x}, pool_attrs(spec));
}

ir::ValueId avg_pool(OpBuilder& builder, ir::ValueId x, PoolSpec spec) {
  if (const auto none = nothing_of(builder, x, spec.windows, builder.type(x).shape[1])) return *none;
  const auto pool = [&](ir::ValueId value) {
    PoolSpec own = spec;
    value = padded_for(builder, value, own.windows, 0);
    ir::Attrs attrs = pool_attrs(own);
    attrs.set("count_include_pad", int64_t{0});
    return builder.add("avg_pool", {value}, std::move(attrs));
  };
  const bool is_padded = !spec.windows.symbolic_pads.empty();
  if (!is_padded) return pool(x);
  // Pads that are nodes count as elements; the mean of ones tells which part of each window is data.
  Compose c(builder);
  ir::SymShape plane = c.shape(x);
  plane[0] = plane[1] = 1;
  return c.div(pool(x), pool(c.filled(c.dtype(x), plane, 1)));
}

}  // namespace tensormill::build
