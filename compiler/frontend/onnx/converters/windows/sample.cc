// Operators that read pictures between their points: GridSample and RoiAlign. A point becomes a weighted sum
// of gathered elements.
#include <algorithm>
#include <array>

#include "compiler/build/compose.h"
#include "compiler/build/pictures/roi_align.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/windows/windows.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// How the picture is read between its points, and beyond its borders.
struct GridOptions {
  std::string mode, padding;
  bool align = false;
};

/// An axis of the picture. Numbers that follow from its extent are worked out from it in the graph where it
/// is free.
struct GridAxis {
  ir::SymInt extent = 0;

  bool is_free() const { return !extent.is_constant(); }
  /// factor * extent + summand in the type of x.
  V number(Compose& c, V x, double factor, double summand) const {
    if (!is_free()) return c.number(x, factor * static_cast<double>(extent.hint()) + summand);
    const V size = c.extent(x, extent), scaled = factor == 1 ? size : c.times(size, factor);
    return summand == 0 ? scaled : c.plus(scaled, summand);
  }
  /// x within [0, extent - 1].
  V clipped(Compose& c, V x) const {
    if (!is_free()) return c.clip(x, 0, static_cast<double>(extent.hint() - 1));
    return c.binary("max", c.binary("min", x, number(c, x, 1, -1)), c.number(x, 0));
  }
};

/// Mirrors a coordinate at the borders, `margin` outside of the first and the last element, until it lies
/// inside.
V reflected(Compose& c, V at, const GridAxis& axis, double margin) {
  const double low = -margin, summand = 2 * margin - 1;
  if (!axis.is_free() && static_cast<double>(axis.extent.hint()) + summand <= 0) return c.times(at, 0);
  V span = axis.number(c, at, 1, summand);
  // Of one element alone there is nothing to mirror: what is made of it is clipped.
  if (axis.is_free()) span = c.binary("max", span, c.number(span, 1));
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

/// The taps of a row-major map of which `outer` are those of the axes before one of `extent` elements, whose
/// own are `own`. No outer ones: those of the first axis.
std::vector<Tap> crossed(Compose& c, const std::vector<Tap>& outer, const std::vector<Tap>& own,
                         const ir::SymInt& extent) {
  if (outer.empty()) return own;
  std::vector<Tap> all;
  for (const Tap& before : outer) {
    for (const Tap& tap : own) {
      all.push_back({c.add(c.mul(before.index, c.dims({extent}, {})), tap.index),
                     c.binary("and", before.inside, tap.inside), c.mul(before.weight, tap.weight)});
    }
  }
  return all;
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
  const ir::SymShape x = c.shape(context.input(0)), grid = c.shape(context.input(1));
  const size_t rank = x.size() - std::min<size_t>(2, x.size());
  if (rank == 0 || grid.size() != x.size())
    context.invalid("a grid of shape " + to_string(grid) + " does not fit X of shape " + to_string(x));
  if (!demand(ir::Relation::kEqual, grid.back(), rank))
    context.invalid("the points of a grid of shape " + to_string(grid) + " have " +
                    std::to_string(grid.back()) + " coordinates, X has " + std::to_string(rank) +
                    " spatial axes");
  if (!demand(ir::Relation::kEqual, grid[0], x[0]))
    context.invalid("a grid of shape " + to_string(grid) + " is for " + std::to_string(grid[0]) +
                    " pictures, X has " + std::to_string(x[0]));
  if (options.mode == "cubic" && rank > 3)
    context.unsupported("mode", "cubic of more than 3 dims is not implemented");
  const ir::SymInt points = num_elements(ir::SymShape(grid.begin() + 1, grid.end() - 1));
  const ir::SymInt plane = num_elements(ir::SymShape(x.begin() + 2, x.end()));
  const V rows = c.cast(c.reshape(context.input(1), {x[0], points, rank}), DType::kFloat32);
  // Integers are weighed as floats; what is taken as it is keeps its type.
  const bool weighed = options.mode != "nearest";
  const DType dtype = c.dtype(context.input(0));
  const DType taken = !weighed || is_float(dtype) ? dtype
                      : dtype_bytes(dtype) < 4    ? DType::kFloat32
                                                  : DType::kFloat64;
  const V data = c.cast(c.reshape(context.input(0), {x[0], x[1], plane}), taken);
  std::vector<Tap> taps;
  for (size_t d = 0; d < rank; ++d) {
    const ir::SymInt& extent = x[d + 2];
    V at = c.squeeze(c.slice(rows, 2, static_cast<int64_t>(rank - 1 - d), 1), 2);
    const GridAxis axis{extent};
    at = to_position(c, at, axis, options);
    if (options.mode != "cubic") at = padded_position(c, at, axis, options);
    taps = crossed(c, taps, axis_taps(c, at, axis, options), extent);
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
  ir::SymShape out{x[0], x[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  context.set_output(0, c.reshape(c.cast(sum, dtype), out));
}

namespace {

/// An operand that may be left out has the shape.
void check_grid_operand(NodeContext& context, size_t index, const char* name, const ir::SymShape& expected) {
  if (!context.has_input(index)) return;
  const ir::SymShape& shape = context.type(context.input(index)).shape;
  if (!demand_equal(shape, expected))
    context.invalid(std::string(name) + " has shape " + to_string(shape) + ", expected " +
                    to_string(expected));
}

/// Where a window's taps lie along axis `d` before they are moved, by tap and point of `out`
/// [N,M,spatial...], whose extents may be free: [taps,points].
V tap_places(Compose& c, const Windows& windows, size_t d, const ir::SymShape& out) {
  const size_t rank = windows.kernel.size();
  const V tap = c.cast(c.positions(windows.kernel[d], d, 2 * rank), DType::kFloat32);
  const V point = c.cast(c.positions(out[d + 2], rank + d, 2 * rank), DType::kFloat32);
  const V inside =
      c.minus(c.times(tap, static_cast<double>(windows.dilations[d])), static_cast<double>(windows.pads[d]));
  const V base = c.add(inside, c.times(point, static_cast<double>(windows.strides[d])));
  ir::SymShape all = windows.kernel;
  all.insert(all.end(), out.begin() + 2, out.end());
  const ir::SymInt taps = num_elements(windows.kernel),
                   points = num_elements(ir::SymShape(out.begin() + 2, out.end()));
  return c.reshape(c.expand(base, all), {taps, points});
}

/// What a DeformConv is made of.
struct Deformed {
  Windows windows;
  ir::SymShape in, weights, out;               ///< [N,C,spatial...], [M,C/group,kernel...], [N,M,spatial...]
  int64_t group = 1, parts = 1;                ///< of channels: with weights, and with offsets of their own
  ir::SymInt taps = 1, points = 1, plane = 1;  ///< of the kernel, the output and the input
};

Deformed read_deformed(NodeContext& context) {
  Deformed d;
  d.in = context.type(context.input(0)).shape;
  d.weights = context.type(context.input(1)).shape;
  const size_t rank = d.in.size() - std::min<size_t>(2, d.in.size());
  constexpr size_t kMaxRank = 3;
  if (rank > kMaxRank) context.unsupported("X", "shape " + to_string(d.in) + " is not implemented");
  d.group = context.int_attr("group", 1);
  d.parts = context.int_attr("offset_group", 1);
  if (rank == 0 || d.weights.size() != d.in.size() || d.group < 1 || d.parts < 1 ||
      !demand(ir::Relation::kEqual, d.in[1], context.product(d.weights[1], d.group)) ||
      !demand_divisible(d.weights[0], d.group) || !demand_divisible(d.in[1], d.parts))
    context.invalid("weights of shape " + to_string(d.weights) + " do not fit X of " + to_string(d.in));
  d.windows = read_windows(context, d.in, ir::SymShape(d.weights.begin() + 2, d.weights.end()));
  d.out = {d.in[0], d.weights[0]};
  for (size_t i = 0; i < rank; ++i) {
    const ir::SymInt reach = (d.windows.kernel[i] - 1) * d.windows.dilations[i] + 1;
    const ir::SymInt room = d.in[i + 2] + d.windows.pads[i] + d.windows.pads[i + rank] - reach;
    d.out.push_back(max(floordiv(room, d.windows.strides[i]) + 1, 0));
    d.taps = context.product(d.taps, d.windows.kernel[i]);
    d.points = context.product(d.points, d.out.back());
    d.plane = context.product(d.plane, d.in[i + 2]);
  }
  ir::SymShape masks = d.out, moves = d.out;
  masks[1] = context.product(d.taps, d.parts);
  moves[1] = context.product(masks[1], static_cast<int64_t>(rank));
  check_grid_operand(context, 2, "offset", moves);
  check_grid_operand(context, 3, "B", {d.weights[0]});
  check_grid_operand(context, 4, "mask", masks);
  return d;
}

}  // namespace

// Opset 19: a convolution whose taps are moved by offsets [N,parts*taps*rank,out...] and weighed by a mask.
void convert_deform_conv(NodeContext& context) {
  Compose c(context);
  const Deformed deformed = read_deformed(context);
  const auto& [windows, in, weights, out, group, parts, taps, points, plane] = deformed;
  const V x = context.input(0);
  const size_t rank = in.size() - 2;
  const ir::SymInt samples = context.product(taps, points);
  GridOptions options;
  options.mode = "linear";
  options.padding = "zeros";
  const V offsets = c.reshape(context.input(2), {in[0], parts, taps, static_cast<int64_t>(rank), points});
  std::vector<Tap> all;
  for (size_t d = 0; d < rank; ++d) {
    const V own = c.cast(c.squeeze(c.slice(offsets, 3, static_cast<int64_t>(d), 1), 3), DType::kFloat32);
    const V at = c.add(own, tap_places(c, windows, d, out));
    all = crossed(c, all, axis_taps(c, at, {in[d + 2]}, options), in[d + 2]);
  }
  const ir::SymInt channels = in[1] / parts;
  const V data = c.reshape(x, {in[0], parts, channels, plane});
  V columns = ir::kAbsent;
  for (const Tap& tap : all) {
    const ir::SymShape row{in[0], parts, 1, samples};
    const V index = c.expand(c.reshape(tap.index, row), {in[0], parts, channels, samples});
    const V weighed =
        c.mul(c.gather_elements(data, index, 3), c.cast(c.reshape(tap.weight, row), c.dtype(x)));
    // Not a weight of 0, which makes NaN of an infinity at the edge.
    const V part = c.where(c.reshape(tap.inside, row), weighed, c.number(weighed, 0));
    columns = columns == ir::kAbsent ? part : c.add(columns, part);
  }
  if (context.has_input(4)) columns = c.mul(columns, c.reshape(context.input(4), {in[0], parts, 1, samples}));
  columns = c.reshape(columns, {in[0], group, context.product(weights[1], taps), points});
  const V filters =
      c.reshape(context.input(1), {1, group, weights[0] / group, context.product(weights[1], taps)});
  V result = c.reshape(c.matmul(filters, columns), out);
  ir::SymShape along(in.size() - 1, 1);
  along[0] = weights[0];
  if (context.has_input(3)) result = c.add(result, c.reshape(context.input(3), along));
  context.set_output(0, result);
}

// X [N,C,H,W], boxes [M,4] as x1,y1,x2,y2, and the picture of each.
void convert_roi_align(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0);
  const ir::SymShape shape = c.shape(x), boxes = c.shape(context.input(1));
  if (shape.size() != 4 || boxes.size() != 2 || !demand(ir::Relation::kEqual, boxes[1], 4))
    context.invalid("X has shape " + to_string(shape) + ", the boxes " + to_string(boxes));
  const ir::SymShape pictures_of = c.shape(context.input(2));
  // Of boxes that data chooses there are as many as there is room for.
  const bool is_data_dependent = !context.data_shape(context.input(1)).extents.empty() ||
                                 !context.data_shape(context.input(2)).extents.empty();
  if (!is_data_dependent && !demand_equal(pictures_of, {boxes[0]}))
    context.invalid("batch_indices have shape " + to_string(pictures_of) + ", of " +
                    std::to_string(boxes[0]) + " boxes");
  build::RoiAlign options{x, context.input(1), context.input(2)};
  options.height = context.int_attr("output_height", 1);
  options.width = context.int_attr("output_width", 1);
  options.samples = context.int_attr("sampling_ratio", 0);
  options.scale = context.float_attr("spatial_scale", 1.0);
  options.is_max = context.string_attr("mode", "avg") == "max";
  options.half_pixel =
      context.string_attr("coordinate_transformation_mode",
                          context.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  context.set_output(0, build::roi_align(context, options));
}

}  // namespace tensormill::frontend::onnx
