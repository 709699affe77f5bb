// Operators that read pictures between their points: GridSample and RoiAlign. A point becomes a weighted sum
// of gathered elements.
#include <algorithm>
#include <array>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// How the picture is read between its points, and beyond its borders.
struct GridOptions {
  std::string mode, padding;
  bool align = false;
};

/// An axis of the picture. In a sample, whose extents may be free, numbers that follow from the extent are
/// worked out from it in the graph.
struct GridAxis {
  int64_t extent = 0;
  bool is_sample = false;

  /// factor * extent + summand in the type of x.
  V number(Compose& c, V x, double factor, double summand) const {
    const double size = static_cast<double>(extent);
    if (!is_sample) return c.number(x, factor * size + summand);
    const V scaled = factor == 1 ? c.number(x, size) : c.times(c.number(x, size), factor);
    return summand == 0 ? scaled : c.plus(scaled, summand);
  }
  /// x within [0, extent - 1].
  V clipped(Compose& c, V x) const {
    if (!is_sample) return c.clip(x, 0, static_cast<double>(extent - 1));
    return c.binary("max", c.binary("min", x, number(c, x, 1, -1)), c.number(x, 0));
  }
};

/// Mirrors a coordinate at the borders, `margin` outside of the first and the last element, until it lies
/// inside.
V reflected(Compose& c, V at, const GridAxis& axis, double margin) {
  const double low = -margin, summand = 2 * margin - 1;
  if (!axis.is_sample && static_cast<double>(axis.extent) + summand <= 0) return c.times(at, 0);
  V span = axis.number(c, at, 1, summand);
  // Of one element alone there is nothing to mirror: what is made of it is clipped.
  if (axis.is_sample) span = c.binary("max", span, c.number(span, 1));
  const V from = c.unary("abs", c.minus(at, low));
  const V turns = c.unary("floor", c.mul(from, c.div(c.number(span, 1), span)));
  const V rest = c.sub(from, c.mul(turns, span));
  const V half = c.times(turns, 0.5);
  const V is_even = c.binary("equal", half, c.unary("floor", half));
  return c.where(is_even, c.plus(rest, low), c.sub(axis.number(c, rest, 1, summand + low), rest));
}

/// A grid value of [-1, 1] as a position in an axis.
V to_position(Compose& c, V grid, const GridAxis& axis, const GridOptions& options) {
  if (options.align) return c.mul(c.plus(grid, 1), axis.number(c, grid, 0.5, -0.5));
  return c.times(c.minus(c.mul(c.plus(grid, 1), axis.number(c, grid, 1, 0)), 1), 0.5);
}

V padded_position(Compose& c, V at, const GridAxis& axis, const GridOptions& options) {
  if (options.padding == "border") return axis.clipped(c, at);
  if (options.padding != "reflection") return at;
  return axis.clipped(c, reflected(c, at, axis, options.align ? 0 : 0.5));
}

/// The elements of each of the axis's taps: index in range, and whether it was; both [N, points].
struct Tap {
  V index, inside, weight;
};

std::vector<Tap> axis_taps(Compose& c, V at, const GridAxis& axis, const GridOptions& options) {
  std::vector<Tap> taps;
  const auto add = [&](V element, V weight) {
    V position = element;
    if (options.mode == "cubic") position = padded_position(c, element, axis, options);
    const V clipped = axis.clipped(c, position);
    taps.push_back({c.cast(clipped, DType::kInt64), c.binary("equal", clipped, position), weight});
  };
  if (options.mode == "nearest") {
    const V element = c.unary("round", at);
    add(element, c.plus(c.times(element, 0), 1));
    return taps;
  }
  const V base = c.unary("floor", at);
  const V t = c.sub(at, base);
  if (options.mode == "linear") {
    add(base, c.sub(c.number(t, 1), t));
    add(c.plus(base, 1), t);
    return taps;
  }
  const double a = -0.75;
  // The cubic convolution kernel (Keys 1981) at distances 1 + t, t, 1 - t, 2 - t.
  const auto outer = [&](V x) {
    return c.minus(c.mul(c.plus(c.mul(c.minus(c.times(x, a), 5 * a), x), 8 * a), x), 4 * a);
  };
  const auto inner = [&](V x) { return c.plus(c.mul(c.mul(c.minus(c.times(x, a + 2), a + 3), x), x), 1); };
  const V u = c.sub(c.number(t, 1), t);
  const std::array<V, 4> weights = {outer(c.plus(t, 1)), inner(t), inner(u), outer(c.plus(u, 1))};
  for (int i = 0; i < 4; ++i) add(c.plus(base, i - 1), weights[static_cast<size_t>(i)]);
  return taps;
}

GridOptions grid_options(const NodeContext& context) {
  GridOptions options;
  options.mode = context.string_attr("mode", context.opset() < 20 ? "bilinear" : "linear");
  options.padding = context.string_attr("padding_mode", "zeros");
  options.align = context.int_attr("align_corners", 0) != 0;
  if (options.mode == "bilinear") options.mode = "linear";
  if (options.mode == "bicubic") options.mode = "cubic";
  return options;
}

}  // namespace

// X [N,C,spatial...], grid [N,out...,rank] with the last spatial axis first.
void convert_grid_sample(NodeContext& context) {
  Compose c(context);
  const GridOptions options = grid_options(context);
  const Shape x = c.shape(context.input(0)), grid = c.shape(context.input(1));
  const size_t rank = x.size() - std::min<size_t>(2, x.size());
  if (rank == 0 || grid.size() != x.size())
    context.invalid("a grid of shape " + to_string(grid) + " does not fit X of shape " + to_string(x));
  if (grid.back() != static_cast<int64_t>(rank))
    context.invalid("the points of a grid of shape " + to_string(grid) + " have " +
                    std::to_string(grid.back()) + " coordinates, X has " + std::to_string(rank) +
                    " spatial axes");
  if (grid[0] != x[0])
    context.invalid("a grid of shape " + to_string(grid) + " is for " + std::to_string(grid[0]) +
                    " pictures, X has " + std::to_string(x[0]));
  if (options.mode == "cubic" && rank > 3)
    context.unsupported("mode", "cubic of more than 3 dims is not implemented");
  const int64_t points = num_elements(Shape(grid.begin() + 1, grid.end() - 1));
  const int64_t plane = num_elements(Shape(x.begin() + 2, x.end()));
  const V rows = c.cast(c.reshape(context.input(1), {x[0], points, grid.back()}), DType::kFloat32);
  // Integers are weighed as floats; what is taken as it is keeps its type.
  const bool weighed = options.mode != "nearest";
  const DType dtype = c.dtype(context.input(0));
  const DType taken = !weighed || is_float(dtype) ? dtype
                      : dtype_bytes(dtype) < 4    ? DType::kFloat32
                                                  : DType::kFloat64;
  const V data = c.cast(c.reshape(context.input(0), {x[0], x[1], plane}), taken);
  std::vector<Tap> taps{{ir::kAbsent, ir::kAbsent, ir::kAbsent}};
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = x[d + 2];
    V at = c.squeeze(c.slice(rows, 2, static_cast<int64_t>(rank - 1 - d), 1), 2);
    const GridAxis axis{extent, context.is_sample()};
    at = to_position(c, at, axis, options);
    if (options.mode != "cubic") at = padded_position(c, at, axis, options);
    std::vector<Tap> next;
    const std::vector<Tap> own = axis_taps(c, at, axis, options);
    for (const Tap& outer : taps) {
      for (const Tap& tap : own) {
        if (outer.index == ir::kAbsent) {
          next.push_back(tap);
          continue;
        }
        next.push_back({c.add(c.mul(outer.index, c.ints({extent}, {})), tap.index),
                        c.binary("and", outer.inside, tap.inside), c.mul(outer.weight, tap.weight)});
      }
    }
    taps = std::move(next);
  }
  V sum = ir::kAbsent;
  for (const Tap& tap : taps) {
    const V index = c.expand(c.unsqueeze(tap.index, 1), {x[0], x[1], points});
    V part = c.gather_elements(data, index, 2);
    if (weighed) part = c.mul(part, c.cast(c.unsqueeze(tap.weight, 1), taken));
    // Not a weight of 0, which makes NaN of an infinity at the edge.
    part = c.where(c.unsqueeze(tap.inside, 1), part, c.number(part, 0));
    sum = sum == ir::kAbsent ? part : c.add(sum, part);
  }
  Shape out{x[0], x[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  context.set_output(0, c.reshape(c.cast(sum, dtype), out));
}

// Opset 19: a convolution whose taps are moved by offsets [N,groups*taps*2,H',W'] and weighed by a mask.
void convert_deform_conv(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0), w = context.input(1), offset = context.input(2);
  const Shape in = c.shape(x), weights = c.shape(w), moved = c.shape(offset);
  if (in.size() != 4 || weights.size() != 4 || moved.size() != 4 || moved[0] != in[0])
    context.unsupported("X", "shape " + to_string(in) + " is not implemented");
  const int64_t group = context.int_attr("group", 1), offset_group = context.int_attr("offset_group", 1);
  const std::vector<int64_t> strides = context.ints_attr("strides", {1, 1}),
                             dilations = context.ints_attr("dilations", {1, 1}),
                             pads = context.ints_attr("pads", {0, 0, 0, 0});
  const int64_t taps = context.product(weights[2], weights[3]), points = context.product(moved[2], moved[3]);
  const bool fits = group >= 1 && offset_group >= 1 && strides.size() == 2 && dilations.size() == 2 &&
                    pads.size() == 4 && in[1] == context.product(weights[1], group) &&
                    weights[0] % group == 0 && in[1] % offset_group == 0 &&
                    moved[1] == context.product(context.product(2, taps), offset_group);
  if (!fits)
    context.invalid("offsets of shape " + to_string(moved) + " and weights of " + to_string(weights) +
                    " do not fit X of " + to_string(in));
  const int64_t samples = context.product(taps, points), parts = offset_group;
  if (samples > (int64_t{1} << 24))
    context.unsupported("offset", std::to_string(samples) + " positions are not implemented");
  GridOptions options;
  options.mode = "linear";
  options.padding = "zeros";
  const V offsets = c.reshape(offset, {in[0], parts, taps, 2, points});
  std::vector<Tap> axes[2];
  for (size_t d = 0; d < 2; ++d) {
    // Places of the taps, and of the points of the output, whose extents may be free.
    std::vector<double> places;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t step = d == 0 ? tap / weights[3] : tap % weights[3];
      places.push_back(static_cast<double>(step) * static_cast<double>(dilations[d]) -
                       static_cast<double>(pads[d]));
    }
    Shape along{1, 1, 1};
    along[d + 1] = moved[2 + d];
    const V from = c.times(c.cast(c.ints(c.count_to(moved[2 + d]), along), DType::kFloat32),
                           static_cast<double>(strides[d]));
    const V base = c.add(c.doubles(DType::kFloat32, places, {taps, 1, 1}), from);
    const V own = c.squeeze(c.slice(offsets, 3, static_cast<int64_t>(d), 1), 3);
    const V at = c.add(c.cast(own, DType::kFloat32),
                       c.reshape(c.expand(base, {taps, moved[2], moved[3]}), {taps, points}));
    axes[d] = axis_taps(c, at, {in[2 + d], context.is_sample()}, options);
  }
  const int64_t channels = in[1] / parts;
  const V data = c.reshape(x, {in[0], parts, channels, context.product(in[2], in[3])});
  V columns = ir::kAbsent;
  for (const Tap& row : axes[0]) {
    for (const Tap& column : axes[1]) {
      const V index = c.add(c.mul(row.index, c.ints({in[3]}, {})), column.index);
      const V inside = c.reshape(c.binary("and", row.inside, column.inside), {in[0], parts, 1, samples});
      const V weight = c.reshape(c.mul(row.weight, column.weight), {in[0], parts, 1, samples});
      const V flat =
          c.expand(c.reshape(index, {in[0], parts, 1, samples}), {in[0], parts, channels, samples});
      const V weighed = c.mul(c.gather_elements(data, flat, 3), c.cast(weight, c.dtype(x)));
      // Not a weight of 0, which makes NaN of an infinity at the edge.
      const V part = c.where(inside, weighed, c.number(weighed, 0));
      columns = columns == ir::kAbsent ? part : c.add(columns, part);
    }
  }
  if (context.has_input(4)) columns = c.mul(columns, c.reshape(context.input(4), {in[0], parts, 1, samples}));
  columns = c.reshape(columns, {in[0], group, context.product(weights[1], taps), points});
  const V filters = c.reshape(w, {1, group, weights[0] / group, context.product(weights[1], taps)});
  V result = c.reshape(c.matmul(filters, columns), {in[0], weights[0], moved[2], moved[3]});
  if (context.has_input(3)) result = c.add(result, c.reshape(context.input(3), {weights[0], 1, 1}));
  context.set_output(0, result);
}

namespace {

/// Sampling points of one axis of each box: [boxes, bins * samples].
V box_points(Compose& c, V start, V size, int64_t bins, int64_t samples) {
  std::vector<double> offsets;
  for (int64_t i = 0; i < bins * samples; ++i)
    offsets.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(bins * samples));
  return c.add(start, c.mul(size, c.doubles(c.dtype(start), offsets, {1, bins * samples})));
}

struct BoxTap {
  V index, weight;  ///< [boxes, points]
};

/// Linear interpolation; points more than one outside weigh nothing, others are moved to the border.
std::array<BoxTap, 2> box_taps(Compose& c, V at, const GridAxis& axis) {
  const V outside = c.binary("or", c.binary("less", at, c.number(at, -1)),
                             c.binary("greater", at, axis.number(c, at, 1, 0)));
  const V inside = axis.clipped(c, at);
  const V low = c.unary("floor", inside);
  const V t = c.sub(inside, low);
  const V zero = c.number(t, 0);
  return {BoxTap{c.cast(low, DType::kInt64), c.where(outside, zero, c.sub(c.number(t, 1), t))},
          BoxTap{c.cast(axis.clipped(c, c.plus(low, 1)), DType::kInt64), c.where(outside, zero, t)}};
}

}  // namespace

// X [N,C,H,W], boxes [M,4] as x1,y1,x2,y2, and the picture of each.
void convert_roi_align(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0);
  const Shape shape = c.shape(x), boxes = c.shape(context.input(1));
  if (shape.size() != 4 || boxes.size() != 2 || boxes[1] != 4)
    context.invalid("X has shape " + to_string(shape) + ", the boxes " + to_string(boxes));
  const Shape pictures_of = c.shape(context.input(2));
  // Of boxes that data chooses there are as many as there is room for.
  const bool is_counted = !context.data_shape(context.input(1)).extents.empty() ||
                          !context.data_shape(context.input(2)).extents.empty();
  if (pictures_of != Shape{boxes[0]} && !is_counted)
    context.invalid("batch_indices have shape " + to_string(pictures_of) + ", of " +
                    std::to_string(boxes[0]) + " boxes");
  const int64_t height = context.int_attr("output_height", 1), width = context.int_attr("output_width", 1);
  const int64_t samples = context.int_attr("sampling_ratio", 0);
  const bool is_max = context.string_attr("mode", "avg") == "max";
  const bool half =
      context.string_attr("coordinate_transformation_mode",
                          context.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  if (samples < 1) {
    // As many as a bin has pixels: work that depends on the boxes.
    const DType dtype = c.dtype(x), wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
    const V pooled =
        context.add("roi_align", {c.cast(x, wide), c.cast(context.input(1), wide), context.input(2)},
                    {{"height", height},
                     {"width", width},
                     {"is_max", int64_t{is_max}},
                     {"half_pixel", int64_t{half}},
                     {"spatial_scale", context.float_attr("spatial_scale", 1.0)}});
    context.set_output(0, c.cast(pooled, dtype));
    return;
  }
  const V scaled =
      c.minus(c.times(context.input(1), context.float_attr("spatial_scale", 1.0)), half ? 0.5 : 0.0);
  const auto corner = [&](int64_t index) { return c.slice(scaled, 1, index, 1); };
  const auto size = [&](int64_t from, int64_t to) {
    const V extent = c.sub(corner(to), corner(from));
    return half ? extent : c.binary("max", extent, c.number(extent, 1));
  };
  const int64_t rows = height * samples, columns = width * samples, count = boxes[0];
  const GridAxis y_axis{shape[2], context.is_sample()}, x_axis{shape[3], context.is_sample()};
  const auto y_taps = box_taps(c, box_points(c, corner(1), size(1, 3), height, samples), y_axis);
  const auto x_taps = box_taps(c, box_points(c, corner(0), size(0, 2), width, samples), x_axis);
  const V pictures = c.gather(c.reshape(x, {shape[0], shape[1], shape[2] * shape[3]}), context.input(2), 0);
  V result = ir::kAbsent;
  for (const BoxTap& y_tap : y_taps) {
    for (const BoxTap& x_tap : x_taps) {
      const V index =
          c.add(c.mul(c.unsqueeze(y_tap.index, 2), c.ints({shape[3]}, {})), c.unsqueeze(x_tap.index, 1));
      const V flat =
          c.expand(c.reshape(index, {count, 1, rows * columns}), {count, shape[1], rows * columns});
      const V weight = c.mul(c.unsqueeze(y_tap.weight, 2), c.unsqueeze(x_tap.weight, 1));
      const V part =
          c.mul(c.gather_elements(pictures, flat, 2), c.reshape(weight, {count, 1, rows * columns}));
      result = result == ir::kAbsent ? part : is_max ? c.binary("max", result, part) : c.add(result, part);
    }
  }
  const V grid = c.reshape(result, {count, shape[1], height, samples, width, samples});
  context.set_output(0, c.reduce(is_max ? "reduce_max" : "reduce_mean", grid, {3, 5}, false));
}

}  // namespace tensormill::frontend::onnx
