// Resize and Upsample: along each axis an output element is a weighted sum of a few input elements whose
// positions and weights are known while the graph is built (ONNX operator specification, Resize).
#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/resize_taps.h"

namespace tensormill::frontend::onnx {

namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 24;
constexpr double kMaxTaps = 4096;

/// Whether the filter is as wide as the ratio of two extents says.
bool is_wide(const ResizeAxis& axis, const ResizeOptions& options) {
  return options.antialias && (axis.by_size || axis.computed != ir::kAbsent) && options.mode != "nearest";
}

/// Whether make_taps can be written as nodes: the number of taps is the same for every extent.
bool has_formula(const ResizeAxis& axis, const ResizeOptions& options) {
  constexpr int64_t kMaxListedTaps = 64;
  return !is_wide(axis, options) && ResizeReach(axis, options).count <= kMaxListedTaps;
}

/// The scale, of the type of `like`.
ir::ValueId scale_nodes(Compose& c, const ResizeAxis& axis, ir::ValueId like) {
  if (axis.computed != ir::kAbsent) return c.cast(axis.computed, c.dtype(like));
  if (!axis.by_size) return c.number(like, axis.scale);
  return c.div(c.number(like, static_cast<double>(axis.out)), c.number(like, static_cast<double>(axis.in)));
}

/// source_position for all output elements, from extents that are constants of their own: f64 [out], or f32.
ir::ValueId position_nodes(Compose& c, const ResizeAxis& axis, const ResizeOptions& options) {
  const std::string& mode = options.coordinates;
  const DType dtype = options.mode == "nearest" ? DType::kFloat32 : DType::kFloat64;
  const ir::ValueId x = c.cast(c.ints(c.count_to(axis.out), {axis.out}), dtype);
  const ir::ValueId in = c.number(x, static_cast<double>(axis.in));
  const ir::ValueId out = c.number(x, static_cast<double>(axis.out));
  const ir::ValueId scale = scale_nodes(c, axis, x);
  const ir::ValueId real_out = axis.by_size ? out : c.mul(in, scale);
  const ir::ValueId between = c.minus(in, 1);
  // 1, or 0 where there is one output element.
  const auto is_more = [&](ir::ValueId extent) {
    return c.binary("min", c.minus(extent, 1), c.number(x, 1));
  };
  const ir::ValueId steps = c.binary("max", c.minus(real_out, 1), c.number(x, 1));
  if (mode == "align_corners") return c.mul(c.div(c.mul(x, between), steps), is_more(real_out));
  if (mode == "asymmetric") return c.div(x, scale);
  if (mode == "tf_half_pixel_for_nn") return c.div(c.plus(x, 0.5), scale);
  if (mode == "tf_crop_and_resize") {
    const ir::ValueId more = is_more(real_out);
    const ir::ValueId part = c.add(c.mul(c.div(x, steps), more), c.times(c.sub(c.number(x, 1), more), 0.5));
    return c.mul(c.plus(c.times(part, axis.roi_end - axis.roi_start), axis.roi_start), between);
  }
  const ir::ValueId position = c.minus(c.div(c.plus(x, 0.5), scale), 0.5);
  if (mode == "pytorch_half_pixel") return c.mul(position, is_more(out));
  if (mode == "half_pixel") return position;
  const ir::ValueId rest = c.sub(c.number(x, 1), c.div(out, real_out));
  return c.add(c.mul(c.times(in, 0.5), rest), position);
}

/// The filter's value at each distance.
ir::ValueId filter_nodes(Compose& c, ir::ValueId distance, const ResizeOptions& options) {
  const ir::ValueId x = c.unary("abs", distance), zero = c.number(x, 0), one = c.number(x, 1);
  if (options.mode == "linear") return c.binary("max", c.sub(one, x), zero);
  const double a = options.cubic;
  const ir::ValueId inner = c.plus(c.mul(c.mul(c.minus(c.times(x, a + 2), a + 3), x), x), 1);
  const ir::ValueId outer = c.minus(c.mul(c.plus(c.mul(c.minus(c.times(x, a), 5 * a), x), 8 * a), x), 4 * a);
  const ir::ValueId near = c.binary("less_equal", x, one), far = c.binary("less", x, c.number(x, 2));
  return c.where(near, inner, c.where(far, outer, zero));
}

/// resize_axis as nodes of one form for every extent.
ir::ValueId resize_by_nodes(Compose& c, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                            const ResizeOptions& options) {
  const ir::ValueId position = position_nodes(c, axis, options);
  const ir::ValueId zero = c.number(position, 0), last = c.number(position, static_cast<double>(axis.in - 1));
  const auto limited = [&](ir::ValueId at) { return c.binary("min", c.binary("max", at, zero), last); };
  const auto element_of = [&](ir::ValueId at) { return c.cast(limited(at), DType::kInt64); };
  if (options.mode == "nearest" && options.nearest == kNearestByScale) {
    const ir::ValueId scale = scale_nodes(c, axis, position);
    const ir::ValueId is_less = c.binary("less", scale, c.number(scale, 1));
    return c.gather(x, element_of(c.where(is_less, c.unary("ceil", position), c.unary("floor", position))),
                    dim);
  }
  if (options.mode == "nearest") {
    const bool up = options.nearest == "ceil" || options.nearest == "round_prefer_floor";
    const double shift = options.nearest == "round_prefer_ceil"    ? 0.5
                         : options.nearest == "round_prefer_floor" ? -0.5
                                                                   : 0;
    return c.gather(x, element_of(c.unary(up ? "ceil" : "floor", c.plus(position, shift))), dim);
  }
  const ResizeReach reach(axis, options);
  const ir::ValueId base = c.unary("floor", position);
  std::vector<ir::ValueId> elements, weights;
  ir::ValueId sum = ir::kAbsent;
  for (int64_t tap = 0; tap < reach.count; ++tap) {
    const ir::ValueId element = c.plus(base, static_cast<double>(reach.first + tap));
    ir::ValueId weight = filter_nodes(c, c.times(c.sub(element, position), reach.shrink), options);
    if (options.exclude_outside) weight = c.where(c.binary("equal", limited(element), element), weight, zero);
    elements.push_back(element_of(element));
    weights.push_back(weight);
    sum = sum == ir::kAbsent ? weight : c.add(sum, weight);
  }
  Shape along(c.shape(x).size(), 1);
  along[static_cast<size_t>(dim)] = axis.out;
  const bool is_whole = !options.antialias && !options.exclude_outside;
  ir::ValueId result = ir::kAbsent;
  for (size_t tap = 0; tap < weights.size(); ++tap) {
    const ir::ValueId weight = is_whole ? weights[tap] : c.div(weights[tap], sum);
    const ir::ValueId part =
        c.mul(c.gather(x, elements[tap], dim), c.reshape(c.cast(weight, c.dtype(x)), along));
    result = result == ir::kAbsent ? part : c.add(result, part);
  }
  return result;
}

/// resize_axis as a product with a matrix of all weights: for filters whose number of taps depends on
/// extents. Elements outside are the nearest inside, as far as any filter reaches.
ir::ValueId resize_by_product(Compose& c, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                              const ResizeOptions& options) {
  const ir::ValueId position = position_nodes(c, axis, options), zero = c.number(position, 0);
  const ir::ValueId in = c.number(position, static_cast<double>(axis.in)), last = c.minus(in, 1);
  const ir::ValueId scale = scale_nodes(c, axis, position);
  const int64_t reach = (options.mode == "cubic" ? 2 : 1) * axis.in + 1;
  const int64_t extent = axis.in + 2 * reach;
  const ir::ValueId counted = c.cast(c.ints(c.count_to(extent), {extent}), DType::kFloat64);
  const ir::ValueId elements = c.sub(counted, c.number(position, static_cast<double>(reach)));
  const ir::ValueId limited = c.binary("min", c.binary("max", elements, zero), last);
  const ir::ValueId apart = c.sub(elements, c.reshape(position, {axis.out, 1}));
  ir::ValueId weights = filter_nodes(c, c.mul(apart, c.binary("min", scale, c.number(scale, 1))), options);
  if (options.exclude_outside) weights = c.where(c.binary("equal", limited, elements), weights, zero);
  weights = c.div(weights, c.reduce("reduce_sum", weights, {1}, true));
  std::vector<int64_t> perm = c.count_to(static_cast<int64_t>(c.shape(x).size()));
  std::swap(perm[static_cast<size_t>(dim)], perm.back());
  const ir::ValueId all = c.transpose(c.gather(x, c.cast(limited, DType::kInt64), dim), perm);
  return c.transpose(c.matmul(all, c.cast(weights, c.dtype(x)), true), perm);
}

/// The taps' weighted sum along `dim`, or the nearest element.
ir::ValueId resize_axis(Compose& c, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                        const ResizeOptions& options) {
  const ResizeTaps taps = make_taps(axis, options);
  if (options.mode == "nearest") return c.gather(x, c.ints(taps.elements, {axis.out}), dim);
  Shape along(c.shape(x).size(), 1);
  along[static_cast<size_t>(dim)] = axis.out;
  ir::ValueId sum = ir::kAbsent;
  for (int64_t tap = 0; tap < taps.count; ++tap) {
    std::vector<int64_t> elements;
    std::vector<double> weights;
    for (int64_t i = 0; i < axis.out; ++i) {
      elements.push_back(taps.elements[static_cast<size_t>(i * taps.count + tap)]);
      weights.push_back(taps.weights[static_cast<size_t>(i * taps.count + tap)]);
    }
    const ir::ValueId part =
        c.mul(c.gather(x, c.ints(elements, {axis.out}), dim), c.doubles(c.dtype(x), weights, along));
    sum = sum == ir::kAbsent ? part : c.add(sum, part);
  }
  return sum;
}

/// Where an output position lies outside of the input, along `dim`.
ir::ValueId outside_mask(NodeContext& context, size_t rank, size_t dim, const ResizeAxis& axis,
                         const ResizeOptions& options) {
  if (context.is_sample()) {
    Compose c(context);
    const ir::ValueId position = position_nodes(c, axis, options);
    const ir::ValueId last = c.number(position, static_cast<double>(axis.in - 1));
    const ir::ValueId mask = c.binary("or", c.binary("less", position, c.number(position, 0)),
                                      c.binary("greater", position, last));
    Shape shape(rank, 1);
    shape[dim] = axis.out;
    return c.reshape(mask, shape);
  }
  const ResizeTaps taps = make_taps(axis, options);
  Shape along(rank, 1);
  along[dim] = axis.out;
  Tensor mask(DType::kBool, along);
  for (int64_t i = 0; i < axis.out; ++i)
    mask.set_element_int(i, taps.outside[static_cast<size_t>(i)] ? 1 : 0);
  return context.constant(std::move(mask));
}

void check_axes(const NodeContext& context, const std::vector<ResizeAxis>& axes,
                const ResizeOptions& options) {
  for (const ResizeAxis& axis : axes) {
    if (axis.in == axis.out && axis.scale == 1) continue;
    if (!(axis.scale > 0) || axis.in < 1 || axis.out < 0 || axis.out > kMaxExtent)
      context.invalid("an axis of " + std::to_string(axis.in) + " cannot become one of " +
                      std::to_string(axis.out));
    if (options.antialias && 2 / axis.scale > kMaxTaps)
      context.invalid("scale " + std::to_string(axis.scale) + " is too small");
  }
}

/// Axes in the order in which they are resized: those that become shorter first, then the others from the
/// last one on. Elements along the last one are gathered one by one, so that there should be few of them.
/// Samples keep to one order.
std::vector<size_t> resizing_order(const NodeContext& context, const std::vector<ResizeAxis>& axes) {
  std::vector<size_t> order, growing;
  for (size_t d = 0; d < axes.size(); ++d)
    (!context.is_sample() && axes[d].out > axes[d].in ? growing : order).push_back(d);
  order.insert(order.end(), growing.rbegin(), growing.rend());
  return order;
}

ir::ValueId resize(NodeContext& context, const std::vector<ResizeAxis>& axes, const ResizeOptions& options) {
  check_axes(context, axes, options);
  Compose c(context);
  const DType dtype = c.dtype(context.input(0));
  const bool crop = options.coordinates == "tf_crop_and_resize";
  const bool moves = options.mode == "nearest" && !crop;
  const bool keeps = moves || dtype == DType::kFloat32 || dtype == DType::kFloat64;
  ir::ValueId x = keeps ? context.input(0) : c.cast(context.input(0), DType::kFloat32);
  ir::ValueId outside = ir::kAbsent;
  for (const size_t d : resizing_order(context, axes)) {
    // That a size is the axis' own may be by chance in a sample; batches and channels are not resized.
    const bool by_chance =
        context.is_sample() && d > 1 && (axes[d].by_size || axes[d].computed != ir::kAbsent);
    if (axes[d].in == axes[d].out && axes[d].scale == 1 && !by_chance &&
        (!crop || (axes[d].roi_start == 0 && axes[d].roi_end == 1)))
      continue;
    const auto along = [&] {
      if (context.is_sample() && is_wide(axes[d], options) && !crop) return &resize_by_product;
      return context.is_sample() && has_formula(axes[d], options) ? &resize_by_nodes : &resize_axis;
    }();
    x = along(c, x, static_cast<int64_t>(d), axes[d], options);
    if (!crop) continue;
    const ir::ValueId mask = outside_mask(context, axes.size(), d, axes[d], options);
    outside = outside == ir::kAbsent ? mask : c.binary("or", outside, mask);
  }
  if (outside != ir::kAbsent) x = c.where(outside, c.number(x, options.extrapolation), x);
  return c.cast(x, dtype);
}

std::vector<ResizeAxis> axes_of(NodeContext& context) {
  std::vector<ResizeAxis> axes;
  for (int64_t extent : context.type(context.input(0)).shape) axes.push_back({extent, extent, 1});
  return axes;
}

std::vector<double> known_numbers(const NodeContext& context, size_t index, const char* what) {
  std::vector<double> values;
  if (!context.has_input(index)) return values;
  const Tensor& tensor = context.known(index, what);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.element_as_double(i));
  return values;
}

void set_scale(const NodeContext& context, ResizeAxis& axis, double scale) {
  // In float32, as other runtimes have it: the product may round up to the next integer.
  const double out = std::floor(static_cast<float>(axis.in) * static_cast<float>(scale));
  if (!(scale > 0) || !(out <= static_cast<double>(kMaxExtent)))
    context.invalid("scale " + std::to_string(scale) + " of an axis of " + std::to_string(axis.in));
  axis.scale = scale;
  axis.out = static_cast<int64_t>(out);
}

void set_scales(const NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which,
                const std::vector<double>& scales) {
  if (scales.size() != which.size())
    context.invalid("scales has " + std::to_string(scales.size()) + " values for " +
                    std::to_string(which.size()) + " axes");
  for (size_t i = 0; i < which.size(); ++i) set_scale(context, axes[which[i]], scales[i]);
}

/// The part of a row of numbers that nodes compute and element `at` is of, as [1]; kAbsent where it is a
/// constant.
ir::ValueId computed_element(NodeContext& context, ir::ValueId row, int64_t at) {
  const ir::Value& value = context.graph().value(row);
  if (value.producer == ir::kAbsent || value.type.shape.size() != 1) return ir::kAbsent;
  const ir::Node& node = context.graph().node(value.producer);
  if (node.op != "concat") return Compose(context).slice(row, 0, at, 1);
  for (const ir::ValueId part : node.inputs) {
    const int64_t extent = context.type(part).shape[0];
    if (at < extent) return computed_element(context, part, at);
    at -= extent;
  }
  return ir::kAbsent;
}

/// In a sample what nodes compute of shapes stays a value of the run.
void keep_computed(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which,
                   ir::ValueId scales) {
  if (!context.is_sample()) return;
  for (size_t i = 0; i < which.size(); ++i)
    axes[which[i]].computed = computed_element(context, scales, static_cast<int64_t>(i));
}

/// In a sample: the smallest or largest of what each axis would be scaled by, which all of them are, as [1].
ir::ValueId common_scale(NodeContext& context, const std::vector<ResizeAxis>& axes,
                         const std::vector<size_t>& which, const std::vector<int64_t>& sizes,
                         const char* choose) {
  Compose c(context);
  const auto number = [&](int64_t extent) {
    return c.doubles(DType::kFloat64, {static_cast<double>(extent)}, {1});
  };
  ir::ValueId common = ir::kAbsent;
  for (size_t i = 0; i < which.size(); ++i) {
    const ir::ValueId own = c.div(number(sizes[i]), number(axes[which[i]].in));
    common = common == ir::kAbsent ? own : c.binary(choose, common, own);
  }
  return common;
}

void set_sizes(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which,
               const std::vector<int64_t>& sizes) {
  if (sizes.size() != which.size())
    context.invalid("sizes has " + std::to_string(sizes.size()) + " values for " +
                    std::to_string(which.size()) + " axes");
  const std::string policy = context.string_attr("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (size_t i = 0; i < which.size(); ++i) {
    ResizeAxis& axis = axes[which[i]];
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.in);
    axis.out = sizes[i];
    axis.by_size = policy == "stretch";
    const bool better = policy == "not_larger" ? axis.scale < common : axis.scale > common;
    if (i == 0 || better) common = axis.scale;
  }
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller")
    context.invalid("keep_aspect_ratio_policy is \"" + policy + "\"");
  const ir::ValueId computed =
      context.is_sample() ? common_scale(context, axes, which, sizes, policy == "not_larger" ? "min" : "max")
                          : ir::kAbsent;
  for (size_t i = 0; i < which.size(); ++i) {
    ResizeAxis& axis = axes[which[i]];
    axis.scale = common;
    axis.out = static_cast<int64_t>(std::round(common * static_cast<double>(axis.in)));
    axis.computed = computed;
    // Far samples would be lines that hide what other ones show.
    if (context.is_sample() && axis.out < std::min<int64_t>(sizes[i], 3))
      context.invalid("an axis of " + std::to_string(axis.in) + " hardly remains");
  }
}

ResizeOptions options_of(const NodeContext& context) {
  ResizeOptions options;
  options.mode = context.string_attr("mode", "nearest");
  options.coordinates = context.string_attr("coordinate_transformation_mode", "half_pixel");
  options.nearest = context.string_attr("nearest_mode", "round_prefer_floor");
  options.cubic = context.float_attr("cubic_coeff_a", -0.75);
  options.exclude_outside = context.int_attr("exclude_outside", 0) != 0;
  options.antialias = context.int_attr("antialias", 0) != 0;
  options.extrapolation = context.float_attr("extrapolation_value", 0);
  return options;
}

}  // namespace

void convert_resize(NodeContext& context) {
  std::vector<ResizeAxis> axes = axes_of(context);
  const ResizeOptions options = options_of(context);
  std::vector<size_t> which;
  std::vector<int64_t> all(axes.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const int64_t rank = static_cast<int64_t>(axes.size());
  for (int64_t axis : context.ints_attr("axes", all))
    which.push_back(static_cast<size_t>(context.normalize_axis(axis, rank)));
  if (options.coordinates == "tf_crop_and_resize") {
    const std::vector<double> roi = known_numbers(context, 1, "roi");
    if (roi.size() != 2 * which.size()) context.invalid("roi has " + std::to_string(roi.size()) + " values");
    for (size_t i = 0; i < which.size(); ++i) {
      axes[which[i]].roi_start = roi[i];
      axes[which[i]].roi_end = roi[i + which.size()];
    }
  }
  // An operand of no elements counts as not given.
  const bool has_scales = context.has_input(2) && num_elements(context.type(context.input(2)).shape) != 0;
  if (has_scales) {
    set_scales(context, axes, which, known_numbers(context, 2, "scales"));
    keep_computed(context, axes, which, context.input(2));
  } else {
    set_sizes(context, axes, which, context.known_ints(3, "sizes"));
  }
  context.set_output(0, resize(context, axes, options));
}

// Upsample, and Resize of opset 10: positions are x / scale, and the nearest is the element below, or, where
// an axis gets shorter, above: the text of opset 10 leaves it open, its examples have it so.
void convert_upsample(NodeContext& context) {
  std::vector<ResizeAxis> axes = axes_of(context);
  ResizeOptions options;
  options.mode = context.string_attr("mode", "nearest");
  if (options.mode == "bilinear") options.mode = "linear";
  options.coordinates = "asymmetric";
  options.nearest = kNearestByScale;
  std::vector<size_t> all;
  for (size_t i = 0; i < axes.size(); ++i) all.push_back(i);
  std::vector<double> scales;
  if (context.has_input(1)) {
    scales = known_numbers(context, 1, "scales");
  } else if (const AttributeProto* attribute = context.node().find("scales")) {
    scales.assign(attribute->floats.begin(), attribute->floats.end());
  } else if (context.opset() < 7 && axes.size() == 4) {
    scales = {1, 1, context.float_attr("height_scale", 0), context.float_attr("width_scale", 0)};
  } else {
    context.invalid("scales are missing");
  }
  set_scales(context, axes, all, scales);
  if (context.has_input(1)) keep_computed(context, axes, all, context.input(1));
  context.set_output(0, resize(context, axes, options));
}

}  // namespace tensormill::frontend::onnx
