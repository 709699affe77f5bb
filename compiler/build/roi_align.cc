#include "compiler/build/roi_align.h"

#include <array>
#include <vector>

#include "compiler/build/compose.h"

namespace tensormill::build {

namespace {

using V = ir::ValueId;

/// Sampling points of one axis of each box: [boxes, parts * samples].
V box_points(Compose& c, V start, V size, int64_t points) {
  std::vector<double> offsets;
  for (int64_t i = 0; i < points; ++i)
    offsets.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(points));
  return c.add(start, c.mul(size, c.doubles(c.dtype(start), offsets, {1, points})));
}

struct BoxTap {
  V index, weight;  ///< [boxes, points]
};

/// Linear interpolation; points more than one outside weigh nothing, others are moved to the border.
std::array<BoxTap, 2> box_taps(Compose& c, V at, const ir::SymInt& extent) {
  const V first = c.number(at, 0), last = c.extent(at, extent - 1);
  const auto clipped = [&](V place) { return c.binary("min", c.binary("max", place, first), last); };
  const V outside =
      c.binary("or", c.binary("less", at, c.number(at, -1)), c.binary("greater", at, c.extent(at, extent)));
  const V inside = clipped(at);
  const V low = c.unary("floor", inside);
  const V t = c.sub(inside, low);
  const V zero = c.number(t, 0);
  return {BoxTap{c.cast(low, DType::kInt64), c.where(outside, zero, c.sub(c.number(t, 1), t))},
          BoxTap{c.cast(clipped(c.plus(low, 1)), DType::kInt64), c.where(outside, zero, t)}};
}

/// Work that depends on the boxes.
V as_many_as_elements(OpBuilder& builder, const RoiAlign& options) {
  Compose c(builder);
  const DType dtype = c.dtype(options.maps), wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  const V pooled =
      builder.add("roi_align", {c.cast(options.maps, wide), c.cast(options.boxes, wide), options.which},
                  {{"height", options.height},
                   {"width", options.width},
                   {"is_max", int64_t{options.is_max}},
                   {"half_pixel", int64_t{options.half_pixel}},
                   {"spatial_scale", options.scale}});
  return c.cast(pooled, dtype);
}

}  // namespace

V roi_align(OpBuilder& builder, const RoiAlign& options) {
  if (options.samples < 1) return as_many_as_elements(builder, options);
  Compose c(builder);
  const ir::SymShape maps = c.shape(options.maps);
  const ir::SymInt count = c.shape(options.boxes)[0];
  const V scaled = c.minus(c.times(options.boxes, options.scale), options.half_pixel ? 0.5 : 0.0);
  const auto corner = [&](int64_t index) { return c.slice(scaled, 1, index, 1); };
  const auto size = [&](int64_t from) {
    const V extent = c.sub(corner(from + 2), corner(from));
    return options.half_pixel ? extent : c.binary("max", extent, c.number(extent, 1));
  };
  const int64_t rows = options.height * options.samples, columns = options.width * options.samples;
  const auto y_taps = box_taps(c, box_points(c, corner(1), size(1), rows), maps[2]);
  const auto x_taps = box_taps(c, box_points(c, corner(0), size(0), columns), maps[3]);
  // All channels of a place lie together, and no box has a copy of its map.
  const V places = c.reshape(c.transpose(options.maps, {0, 2, 3, 1}), {maps[0] * maps[2] * maps[3], maps[1]});
  const V own = c.gather(c.iota(maps[0]), options.which, 0);
  const V first = c.reshape(c.mul(own, c.dims({maps[2] * maps[3]}, {})), {count, 1});
  V result = ir::kAbsent;
  for (const BoxTap& y_tap : y_taps) {
    const V row = c.mul(c.unsqueeze(y_tap.index, 2), c.dims({maps[3]}, {}));
    for (const BoxTap& x_tap : x_taps) {
      const V index = c.reshape(c.add(row, c.unsqueeze(x_tap.index, 1)), {count, rows * columns});
      const V weight = c.mul(c.unsqueeze(y_tap.weight, 2), c.unsqueeze(x_tap.weight, 1));
      const V part =
          c.mul(c.gather(places, c.add(first, index), 0), c.reshape(weight, {count, rows * columns, 1}));
      result = result == ir::kAbsent ? part
               : options.is_max      ? c.binary("max", result, part)
                                     : c.add(result, part);
    }
  }
  const V parts =
      c.reshape(result, {count, options.height, options.samples, options.width, options.samples, maps[1]});
  const V pooled = c.reduce(options.is_max ? "reduce_max" : "reduce_mean", parts, {2, 4}, false);
  return c.transpose(pooled, {0, 3, 1, 2});
}

}  // namespace tensormill::build
