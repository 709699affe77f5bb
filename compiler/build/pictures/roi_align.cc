#include "compiler/build/pictures/roi_align.h"

#include <array>
#include <vector>

#include "compiler/build/compose.h"

namespace tensormill::build {

namespace {

using V = ir::ValueId;

/// Of the samples along one side of a part those that are taken together.
struct Samples {
  int64_t all = 1, first = 0, count = 1;
};

/// Sampling points of one axis of each box: [boxes, parts * count].
V box_points(Compose& c, V start, V size, int64_t parts, const Samples& samples) {
  std::vector<double> offsets;
  for (int64_t part = 0; part < parts; ++part) {
    for (int64_t sample = samples.first; sample < samples.first + samples.count; ++sample)
      offsets.push_back((static_cast<double>(part * samples.all + sample) + 0.5) /
                        static_cast<double>(parts * samples.all));
  }
  const auto points = static_cast<int64_t>(offsets.size());
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
  // All channels of a place lie together, and no box has a copy of its map.
  const V places = c.reshape(c.transpose(options.maps, {0, 2, 3, 1}), {maps[0] * maps[2] * maps[3], maps[1]});
  // A map that is none has no place either.
  const V own = c.mul(c.cast(options.which, DType::kInt64), c.dims({maps[2] * maps[3]}, {}));
  const V first = c.reshape(own, {count, 1, 1, 1, 1});
  // Few samples are summed where they are taken; of many there is a tensor.
  constexpr int64_t kFewSamples = 2;
  const bool are_few = options.samples <= kFewSamples;
  const int64_t together = are_few ? 1 : options.samples;
  const ir::SymShape parts{count, options.height, together, options.width, together};
  ir::SymShape weighed = parts;
  weighed.push_back(1);
  V result = ir::kAbsent;
  const auto take = [&](V part) {
    result = result == ir::kAbsent ? part
             : options.is_max      ? c.binary("max", result, part)
                                   : c.add(result, part);
  };
  for (int64_t y = 0; y < options.samples; y += together) {
    const V ys = box_points(c, corner(1), size(1), options.height, {options.samples, y, together});
    for (int64_t x = 0; x < options.samples; x += together) {
      const V xs = box_points(c, corner(0), size(0), options.width, {options.samples, x, together});
      for (const BoxTap& y_tap : box_taps(c, ys, maps[2])) {
        const V row = c.mul(c.unsqueeze(y_tap.index, 2), c.dims({maps[3]}, {}));
        for (const BoxTap& x_tap : box_taps(c, xs, maps[3])) {
          const V index = c.reshape(c.add(row, c.unsqueeze(x_tap.index, 1)), parts);
          const V weight = c.mul(c.unsqueeze(y_tap.weight, 2), c.unsqueeze(x_tap.weight, 1));
          take(c.mul(c.gather(places, c.add(first, index), 0), c.reshape(weight, weighed)));
        }
      }
    }
  }
  V pooled = are_few ? c.reshape(result, {count, options.height, options.width, maps[1]})
                     : c.reduce(options.is_max ? "reduce_max" : "reduce_sum", result, {2, 4}, false);
  if (!options.is_max) pooled = c.times(pooled, 1.0 / static_cast<double>(options.samples * options.samples));
  return c.transpose(pooled, {0, 3, 1, 2});
}

}  // namespace tensormill::build
