#include <algorithm>
#include <limits>

#include "compiler/build/compose.h"
#include "compiler/build/maps/conv_pool.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/converters/windows/window_taps.h"
#include "compiler/frontend/onnx/converters/windows/windows.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

/// Positions under windows that are listed while the graph is built.
constexpr int64_t kMaxTapElements = int64_t{1} << 24;

ir::Attrs pool_attrs(const NodeContext& context, const Windows& windows) {
  return {{"kernel", windows.kernel},
          {"strides", windows.strides},
          {"dilations", windows.dilations},
          {"pads", windows.pads},
          // All windows that begin on the input, of which the wanted ones are taken.
          {"ceil_mode", windows.pooled ? int64_t{1} : context.int_attr("ceil_mode", 0)}};
}

/// What is pooled of x where windows reach beyond it: as many elements along each axis as there are windows.
ir::ValueId as_pooled(NodeContext& context, const Windows& windows, ir::ValueId pooled) {
  if (!windows.pooled) return pooled;
  ir::SymShape extents = context.type(pooled).shape;
  std::copy(windows.pooled->begin(), windows.pooled->end(), extents.begin() + 2);
  const ir::SymShape starts(extents.size(), 0), steps(extents.size(), 1);
  return context.add("slice", {pooled}, {{"starts", starts}, {"extents", extents}, {"steps", steps}});
}

/// Windows along each axis, those that the input fills in part too; none starts in the padding behind it. The
/// end is padded for them.
ir::SymShape with_partial_windows(Windows& windows, const ir::SymShape& shape) {
  const size_t rank = windows.kernel.size();
  ir::SymShape counts(rank);
  for (size_t d = 0; d < rank; ++d) {
    const ir::SymInt begin = shape[d + 2] + windows.pads[d];
    const int64_t stride = windows.strides[d], reach = (windows.kernel[d] - 1) * windows.dilations[d] + 1;
    const ir::SymInt left = begin + windows.pads[d + rank] - reach;
    windows.pads[d + rank] += stride - 1;
    counts[d] = max(min(ceildiv(left, stride) + 1, ceildiv(begin, stride)), 0);
  }
  return counts;
}

/// Position of output `at` (spatial index) moved by tap number `tap`, in the padded input.
Shape tap_position(const Windows& windows, const Shape& kernel, const Shape& at, int64_t tap) {
  Shape position(at.size());
  for (size_t d = at.size(); d-- > 0;) {
    position[d] = at[d] * windows.strides[d] + tap % kernel[d] * windows.dilations[d] - windows.pads[d];
    tap /= kernel[d];
  }
  return position;
}

/// Element numbers of [N,C,spatial] under the window's taps, -1 in the padding: [1,1,points,taps].
std::vector<int64_t> tap_elements(const Windows& windows, const Shape& spatial, const Shape& out,
                                  bool column_major) {
  const Shape kernel(windows.kernel);
  const int64_t taps = num_elements(kernel), points = num_elements(out);
  std::vector<int64_t> elements;
  for (int64_t point = 0; point < points; ++point) {
    Shape at(out.size());
    int64_t rest = point;
    for (size_t d = out.size(); d-- > 0; rest /= out[d]) at[d] = rest % out[d];
    for (int64_t tap = 0; tap < taps; ++tap) {
      const Shape position = tap_position(windows, kernel, at, tap);
      int64_t element = 0;
      for (size_t i = 0; i < spatial.size(); ++i) {
        const size_t d = column_major ? spatial.size() - 1 - i : i;
        const bool inside = position[d] >= 0 && position[d] < spatial[d] && element >= 0;
        element = inside ? element * spatial[d] + position[d] : -1;
      }
      elements.push_back(element);
    }
  }
  return elements;
}

/// [points, taps]: what pool_indices reads, and the number of each, in the order that the model says.
struct PoolElements {
  ir::ValueId read, named;
};

PoolElements listed_elements(NodeContext& context, const Windows& windows, const Shape& spatial,
                             const Shape& out, bool column_major) {
  Compose c(context);
  const int64_t taps = num_elements(windows.kernel), points = num_elements(out);
  const std::vector<int64_t> elements = tap_elements(windows, spatial, out, false);
  const std::vector<int64_t> numbers = tap_elements(windows, spatial, out, column_major);
  // Taps in the padding read the window's first element that is inside, so that they never come first, and
  // stand for it.
  std::vector<int64_t> readable = elements, chosen = numbers;
  for (int64_t i = 0; i < points; ++i) {
    const auto row = elements.begin() + i * taps;
    const auto inside = std::find_if(row, row + taps, [](int64_t element) { return element >= 0; });
    if (inside == row + taps) context.invalid("a window lies outside of the input");
    const auto at = static_cast<size_t>(inside - elements.begin());
    std::replace(readable.begin() + i * taps, readable.begin() + (i + 1) * taps, int64_t{-1}, elements[at]);
    std::replace(chosen.begin() + i * taps, chosen.begin() + (i + 1) * taps, int64_t{-1}, numbers[at]);
  }
  return {c.ints(readable, {points, taps}), c.ints(chosen, {points, taps})};
}

/// Output 1 of MaxPool: the element number of the first largest element of each window.
ir::ValueId pool_indices(NodeContext& context, const Windows& windows, ir::SymShape pooled) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const ir::SymShape shape = c.shape(x), spatial(shape.begin() + 2, shape.end()),
                     out(pooled.begin() + 2, pooled.end());
  const ir::SymInt taps = num_elements(windows.kernel), points = num_elements(out),
                   plane = num_elements(spatial);
  const bool column_major = context.int_attr("storage_order", 0) != 0;
  PoolElements elements{};
  // Of a large map the lists would be larger than it.
  const bool is_symbolic = !spatial.is_constant() || !out.is_constant();
  if (is_symbolic || context.product(points, taps) > kMaxTapElements) {
    const WindowGrid grid{spatial, out, windows.kernel, windows.strides, windows.dilations, windows.pads};
    elements.read = window_elements(context, grid, false);
    elements.named = column_major ? window_elements(context, grid, true) : elements.read;
  } else {
    elements = listed_elements(context, windows, spatial, out, column_major);
  }
  const ir::ValueId rows = c.gather(c.reshape(x, {shape[0], shape[1], plane}), elements.read, 2);
  const ir::ValueId table =
      c.expand(c.reshape(elements.named, {1, 1, points, taps}), {shape[0], shape[1], points, taps});
  const ir::ValueId best = c.reshape(c.gather_elements(table, c.arg_max(rows, 3, true), 3), pooled);
  ir::SymShape images(pooled.size(), 1), channels(pooled.size(), 1);
  images[0] = shape[0];
  channels[1] = shape[1];
  const ir::ValueId map =
      c.add(c.mul(c.iota(shape[0], images), c.dims({shape[1]}, {})), c.iota(shape[1], channels));
  return c.add(best, c.mul(map, c.dims({plane}, {})));
}

}  // namespace

std::optional<UnsupportedForm> check_windows(const NodeProto& node, int64_t) {
  const AttributeProto* kernel = node.find("kernel_shape");
  if (kernel == nullptr || kernel->ints.size() <= 3) return std::nullopt;
  return UnsupportedForm{"kernel_shape", "more than 3 spatial dims are not implemented"};
}

ir::ValueId convolution(NodeContext& context, ir::ValueId x, ir::ValueId w, ir::ValueId bias, bool exact) {
  const ir::SymShape weights = context.type(w).shape;
  if (weights.size() < 3)
    context.invalid("the weights have shape " + to_string(weights) + ", expected [M,C/group,kernel...]");
  const ir::SymShape kernel(weights.begin() + 2, weights.end());
  if (context.has_attr("kernel_shape") && !demand_equal(context.ints_attr("kernel_shape", {}), kernel)) {
    context.invalid("kernel_shape is " + to_string(context.ints_attr("kernel_shape", {})) +
                    ", the weights have " + to_string(kernel));
  }
  const int64_t group = context.int_attr("group", 1);
  context.require_bound_extents(x, 1);
  const Windows windows = read_windows(context, context.type(x).shape, kernel);
  return build::conv(context, x, w, bias, {windows, group, exact});
}

void convert_conv(NodeContext& context) {
  context.set_output(0, convolution(context, context.input(0), context.input(1), context.optional_input(2)));
}

void convert_max_pool(NodeContext& context) {
  Windows windows = read_pool_windows(context, context.input(0));
  const bool has_indices = context.num_outputs() > 1 && !context.node().outputs[1].empty();
  const bool padded = !has_indices && is_float(context.type(context.input(0)).dtype);
  ir::ValueId x = context.input(0);
  if (padded) x = padded_for(context, x, windows, -std::numeric_limits<double>::infinity());
  const ir::ValueId pooled = context.add("max_pool", {x}, pool_attrs(context, windows));
  context.set_output(0, as_pooled(context, windows, pooled));
  if (has_indices) {
    const ir::ValueId indices = pool_indices(context, windows, context.type(pooled).shape);
    context.set_output(1, as_pooled(context, windows, indices));
  }
}

void convert_average_pool(NodeContext& context) {
  context.set_output(0, average_pool(context, context.input(0)));
}

ir::ValueId average_pool(NodeContext& context, ir::ValueId x) {
  const ir::SymShape shape = context.type(x).shape;
  const Windows windows = read_pool_windows(context, x);
  const int64_t includes = context.int_attr("count_include_pad", 0);
  const auto pool = [&](ir::ValueId value, const Windows& own) {
    ir::Attrs attrs = pool_attrs(context, own);
    attrs.set("count_include_pad", includes);
    return context.add("avg_pool", {value}, attrs);
  };
  if (!windows.same || windows.symbolic_pads.empty()) return as_pooled(context, windows, pool(x, windows));
  const auto pool_padded = [&](ir::ValueId value) {
    Windows own = windows;
    value = padded_for(context, value, own, 0);
    return pool(value, own);
  };
  if (includes != 0) return pool_padded(x);
  // Which part of each window is data.
  Compose c(context);
  ir::SymShape plane(shape);
  plane[0] = plane[1] = 1;
  return c.div(pool_padded(x), pool_padded(c.filled(c.dtype(x), plane, 1)));
}

namespace {

/// A float in the first opset, an integer in the later ones.
double power_of(const NodeContext& context) {
  return context.opset() < 2 ? context.float_attr("p", 2) : static_cast<double>(context.int_attr("p", 2));
}

}  // namespace

// (sum of |x|^p under each window)^(1/p); taps in the padding are 0.
void convert_lp_pool(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const ir::SymShape shape = c.shape(x);
  Windows windows = read_pool_windows(context, x);
  const bool is_partial = windows.pooled || context.int_attr("ceil_mode", 0) != 0;
  ir::SymShape counts = is_partial ? with_partial_windows(windows, shape) : ir::SymShape();
  if (windows.pooled) counts = *windows.pooled;
  const double p = power_of(context);
  if (p < 1) context.invalid("p is below 1");
  ir::SymShape planes(shape), ones{1, 1};
  planes[0] = context.product(shape[0], shape[1]);
  planes[1] = 1;
  ones.insert(ones.end(), windows.kernel.begin(), windows.kernel.end());
  ir::ValueId powers = c.reshape(c.binary("pow", c.unary("abs", x), c.number(x, p)), planes);
  powers = padded_for(context, powers, windows, 0);
  const ir::Attrs attrs{{"strides", windows.strides},
                        {"dilations", windows.dilations},
                        {"pads", windows.pads},
                        {"group", int64_t{1}}};
  ir::ValueId sums = context.add("conv", {powers, c.filled(c.dtype(x), ones, 1)}, attrs);
  if (is_partial) {
    ir::SymShape extents = c.shape(sums);
    std::copy(counts.begin(), counts.end(), extents.begin() + 2);
    if (extents != c.shape(sums))
      sums = context.add("slice", {sums},
                         {{"starts", ir::SymShape(extents.size(), 0)},
                          {"extents", extents},
                          {"steps", ir::SymShape(extents.size(), 1)}});
  }
  ir::SymShape out = c.shape(sums);
  out[0] = shape[0];
  out[1] = shape[1];
  context.set_output(0, c.binary("pow", c.reshape(sums, out), c.number(x, 1 / p)));
}

void convert_global_lp_pool(NodeContext& context) {
  Compose c(context);
  const DType dtype = c.dtype(context.input(0));
  // Sums of powers would leave float16's range.
  const ir::ValueId x = c.cast(context.input(0), dtype == DType::kFloat16 ? DType::kFloat32 : dtype);
  const double p = power_of(context);
  if (p < 1) context.invalid("p is below 1");
  const ir::ValueId powers = c.binary("pow", c.unary("abs", x), c.number(x, p));
  const ir::ValueId root = c.binary("pow", c.reduce_spatial("reduce_sum", powers), c.number(x, 1 / p));
  context.set_output(0, c.cast(root, dtype));
}

namespace {

using V = ir::ValueId;

/// An axis of a picture that a run puts together from its windows: integers as i64 [1].
struct DynamicWindows {
  ir::SymInt extent;
  V image = ir::kAbsent, block = ir::kAbsent, windows = ir::kAbsent;
};

/// Axis `d` of the picture and its windows. `fits`: whether they do, so far.
DynamicWindows dynamic_windows(NodeContext& context, const Windows& form, size_t d, V& fits) {
  Compose c(context);
  const auto number = [&](size_t index) {
    return c.cast(row_element(context, context.input(index), static_cast<int64_t>(d)), DType::kInt64);
  };
  const auto less = [&](int64_t a, V b) { return c.binary("less", c.dims({a}, {1}), b); };
  DynamicWindows axis;
  axis.extent = run_extent(context, number(1), kMaxListed, "image_shape", 1);
  axis.image = context.extents({axis.extent});
  const V block = number(2);
  axis.block = c.binary("max", block, c.ints({1}, {1}));
  const int64_t pads = form.pads[d] + form.pads[d + form.strides.size()];
  const V reach = c.plus(c.times(c.minus(axis.block, 1), static_cast<double>(form.dilations[d])), 1);
  const V free = c.sub(c.plus(axis.image, static_cast<double>(pads)), reach);
  axis.windows = c.plus(c.div(free, c.dims({form.strides[d]}, {1})), 1);
  for (const V holds : {less(0, block), less(0, axis.image), less(-1, free), less(0, axis.windows)})
    fits = fits == ir::kAbsent ? holds : c.binary("and", fits, holds);
  axis.windows = c.binary("max", axis.windows, c.ints({1}, {1}));
  return axis;
}

/// The rest of `number` by `extent`, of which the quotient stays in `number`.
V last_digit(NodeContext& context, V& number, V extent) {
  const V digit = context.add("mod", {number, extent}, {{"fmod", int64_t{0}}});
  number = context.add("div", {number, extent});
  return digit;
}

/// How many channels `rows` (i64 [1]) of the columns x are of; a run fails in which `fits` does not hold, or
/// in which `taps` and `points` are not those of the columns.
V checked_channels(NodeContext& context, const ir::SymShape& x, V rows, V taps, V points, V fits) {
  Compose c(context);
  const V whole = c.div(rows, taps);
  fits = c.binary("and", fits, c.binary("equal", points, c.dims({x[2]}, {1})));
  fits = c.binary("and", fits, c.binary("equal", c.mul(whole, taps), rows));
  const Check check{fits,
                    "image_shape {} and block_shape {} do not fit {} rows of {}",
                    {context.input(1), context.input(2), rows, c.dims({x[2]}, {1})}};
  return value_if(context, whole, check);
}

/// Where the elements of columns lie in a picture of `shape` [N,C,spatial...], and whether inside of it.
struct PicturePlaces {
  ir::SymShape shape;
  V place = ir::kAbsent, inside = ir::kAbsent;
};

PicturePlaces picture_places(NodeContext& context, const ir::SymShape& x, const Windows& form,
                             const std::vector<DynamicWindows>& axes, const ir::SymInt& channels) {
  Compose c(context);
  // Of each row its channel and tap, of each column its window.
  V channel = c.iota(x[1], {x[1], 1}), window = c.iota(x[2], {1, x[2]});
  std::vector<V> places(axes.size());
  for (size_t d = axes.size(); d-- > 0;) {
    const V start = last_digit(context, window, axes[d].windows);
    const V step = last_digit(context, channel, axes[d].block);
    places[d] = c.add(c.times(start, static_cast<double>(form.strides[d])),
                      c.times(step, static_cast<double>(form.dilations[d])));
    places[d] = c.minus(places[d], static_cast<double>(form.pads[d]));
  }
  PicturePlaces result{{x[0], channels}, channel, c.binary("less", channel, c.dims({channels}, {1}))};
  for (size_t d = 0; d < axes.size(); ++d) {
    result.shape.push_back(axes[d].extent);
    const V is_there = c.binary("and", c.binary("greater_equal", places[d], c.ints({0}, {1})),
                                c.binary("less", places[d], axes[d].image));
    result.inside = c.binary("and", result.inside, is_there);
    result.place = c.add(c.mul(result.place, axes[d].image), places[d]);
  }
  return result;
}

/// The picture with each element of the columns added to its place; what lies in the padding is nothing,
/// added to the first element.
V summed_at(NodeContext& context, V columns, const PicturePlaces& places) {
  Compose c(context);
  const ir::SymShape x = c.shape(columns);
  const V wide = c.summable(columns), nothing = c.number(wide, 0);
  const ir::SymInt elements = context.product(x[1], x[2]);
  const V updates = c.reshape(c.where(places.inside, wide, nothing), {x[0], elements});
  const V targets = c.reshape(c.where(places.inside, places.place, c.ints({0}, {1, 1})), {1, elements});
  const ir::SymInt row = num_elements(ir::SymShape(places.shape.begin() + 1, places.shape.end()));
  const V sums = context.add("scatter", {c.filled(c.dtype(wide), {x[0], row}, 0), targets, updates},
                             {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
  return c.reshape(c.cast(sums, c.dtype(columns)), places.shape);
}

/// Col2Im of columns [N,C*taps,windows] where a run says how large the picture or the block is.
V dynamic_col2im(NodeContext& context) {
  Compose c(context);
  const V given = context.input(0);
  const ir::SymShape x = c.shape(given), numbers = c.shape(context.input(1));
  if (x.size() != 3 || numbers.size() != 1 || numbers[0] < 1 || c.shape(context.input(2)) != numbers)
    context.invalid("columns of shape " + to_string(x) + ", image_shape of " + to_string(numbers));
  const auto rank = static_cast<size_t>(numbers[0]);
  const Windows form = read_windows(context, ir::SymShape(rank + 2, 1), std::vector<int64_t>(rank, 1));
  V fits = ir::kAbsent, taps = c.ints({1}, {1}), points = taps;
  std::vector<DynamicWindows> axes;
  for (size_t d = 0; d < rank; ++d) {
    axes.push_back(dynamic_windows(context, form, d, fits));
    taps = c.mul(taps, axes[d].block);
    points = c.mul(points, axes[d].windows);
  }
  const V rows = c.dims({x[1]}, {1});
  const V number = checked_channels(context, x, rows, taps, points, fits);
  const ir::SymInt channels = context.symbolic_ints(number, "block_shape", 1).at(0);
  return summed_at(context, given, picture_places(context, x, form, axes, channels));
}

}  // namespace

// Opset 18: columns [N,C*taps,windows] added to the picture that they were cut from.
void convert_col2im(NodeContext& context) {
  Compose c(context);
  if (is_run_time_value(context, 1) || is_run_time_value(context, 2)) {
    context.set_output(0, dynamic_col2im(context));
    return;
  }
  const ir::SymShape image = context.known_ints(1, "image_shape");
  const ir::Ints block = context.known_ints(2, "block_shape");
  const ir::SymShape x = c.shape(context.input(0));
  const size_t rank = image.size();
  if (x.size() != 3 || rank == 0 || block.size() != rank) context.invalid("columns of shape " + to_string(x));
  ir::SymShape padded{1, 1};
  padded.insert(padded.end(), image.begin(), image.end());
  const auto is_extent = [](const ir::SymInt& n) {
    return demand(ir::Relation::kLessEqual, 1, n) && demand(ir::Relation::kLessEqual, n, kMaxWindowNumber);
  };
  if (!std::all_of(image.begin(), image.end(), is_extent))
    context.invalid("image_shape is " + to_string(image));
  const Windows windows = read_windows(context, padded, block);
  ir::SymShape out(rank);
  ir::SymInt points = 1, plane = 1;
  int64_t taps = 1;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = (block[d] - 1) * windows.dilations[d] + 1;
    const ir::SymInt free = image[d] + windows.pads[d] + windows.pads[d + rank] - reach;
    if (!demand(ir::Relation::kLessEqual, 0, free)) context.invalid("the block does not fit the image");
    out[d] = floordiv(free, windows.strides[d]) + 1;
    points = context.product(points, out[d]);
    taps = context.product(taps, block[d]);
    plane = context.product(plane, image[d]);
  }
  if (!demand(ir::Relation::kEqual, x[2], points) || !demand_divisible(x[1], taps))
    context.invalid("columns of shape " + to_string(x) + ", expected " + std::to_string(taps) +
                    " rows a channel and " + to_string(points) + " windows");
  const ir::SymInt places = max(context.product(plane, taps), context.product(points, taps));
  const bool is_large = !places.is_constant() || places.hint() > kMaxTapElements;
  // What each element of the picture gathers: at most one window a tap; the last column is a zero.
  ir::ValueId from = ir::kAbsent;
  if (is_large) {
    from = element_windows(context, {image, out, block, windows.strides, windows.dilations, windows.pads});
  } else {
    std::vector<int64_t> listed(static_cast<size_t>(int64_t{plane * taps}), taps * points);
    const std::vector<int64_t> elements = tap_elements(windows, image, out, false);
    for (int64_t point = 0; point < points; ++point) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t element = elements[static_cast<size_t>(point * taps + tap)];
        if (element >= 0) listed[static_cast<size_t>(element * taps + tap)] = tap * points + point;
      }
    }
    from = c.ints(listed, {plane, taps});
  }
  const ir::SymInt channels = floordiv(x[1], taps);
  const ir::ValueId rows = c.reshape(c.summable(context.input(0)), {x[0], channels, taps * points});
  const ir::ValueId wide = c.concat({rows, c.filled(c.dtype(rows), {x[0], channels, 1}, 0)}, 2);
  const ir::ValueId parts = c.gather(wide, from, 2);
  ir::SymShape result{x[0], channels};
  result.insert(result.end(), image.begin(), image.end());
  const ir::ValueId sums = c.reduce("reduce_sum", parts, {3}, false);
  context.set_output(0, c.reshape(c.cast(sums, c.dtype(context.input(0))), result));
}

void convert_global_pool(NodeContext& context) {
  const bool is_max = context.node().op_type == "GlobalMaxPool";
  context.set_output(
      0, Compose(context).reduce_spatial(is_max ? "reduce_max" : "reduce_mean", context.input(0)));
}

}  // namespace tensormill::frontend::onnx
