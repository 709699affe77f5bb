// Resize and Upsample: along each axis an output element is a weighted sum of a few input elements, whose
// positions and weights are known while the graph is built, or worked out by nodes (ONNX operator
// specification, Resize).
#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/build/pictures/resize_nodes.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/converters/windows/dynamic_resize.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::frontend::onnx {

namespace {

constexpr double kMaxTaps = 4096;

/// Where an output position lies outside of the input, along `dim`.
ir::ValueId outside_mask(NodeContext& context, size_t rank, size_t dim, const ResizeAxis& axis,
                         const ResizeOptions& options) {
  if (axis.is_dynamic || axis.is_symbolic() || axis.computed != ir::kAbsent) {
    Compose c(context);
    ir::SymShape shape(rank, 1);
    shape[dim] = axis.out;
    return c.reshape(outside_nodes(c, axis, options), shape);
  }
  const build::ResizeTaps taps = make_taps(axis, options);
  ir::SymShape along(rank, 1);
  along[dim] = axis.out;
  Tensor mask(DType::kBool, along);
  for (int64_t i = 0; i < axis.out; ++i)
    mask.set_element_int(i, taps.outside[static_cast<size_t>(i)] ? 1 : 0);
  return context.constant(std::move(mask));
}

void check_axes(const NodeContext& context, const std::vector<ResizeAxis>& axes,
                const ResizeOptions& options) {
  for (const ResizeAxis& axis : axes) {
    if (axis.is_dynamic || (same(axis.in, axis.out) && (axis.by_size || axis.scale == 1))) continue;
    if (!(axis.scale > 0) || axis.in.hint() < 1 || axis.out.hint() < 0 ||
        !demand(ir::Relation::kLessEqual, axis.out, kMaxListed))
      context.invalid("an axis of " + to_string(axis.in) + " cannot become one of " + to_string(axis.out));
    if (options.antialias && 2 / axis.scale > kMaxTaps)
      context.invalid("scale " + std::to_string(axis.scale) + " is too small");
  }
}

/// Axes in the order in which they are resized: those that become shorter first, then the others from the
/// last one on. Elements along the last one are gathered one by one, so that there should be few of them.
std::vector<size_t> resizing_order(const std::vector<ResizeAxis>& axes) {
  std::vector<size_t> order, growing;
  for (size_t d = 0; d < axes.size(); ++d)
    (axes[d].out.hint() > axes[d].in.hint() ? growing : order).push_back(d);
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
  for (const size_t d : resizing_order(axes)) {
    const bool is_scaled = axes[d].computed != ir::kAbsent || (!axes[d].by_size && axes[d].scale != 1);
    const bool is_kept = same(axes[d].in, axes[d].out) && !is_scaled;
    if (is_kept && !axes[d].is_dynamic && (!crop || axes[d].is_whole())) continue;
    const auto dim = static_cast<int64_t>(d);
    if (axes[d].is_dynamic) {
      x = dynamic_resize(c, x, dim, axes[d], options);
    } else {
      const ir::ValueId resized = build::resize_along(context, x, dim, axes[d], options);
      const auto& table = context.graph().symbols();
      const bool may_be_left = table != nullptr && table->is_run_time(axes[d].out.expr());
      x = may_be_left ? unless_left(c, x, resized, dim, axes[d], options) : resized;
    }
    if (!crop) continue;
    const ir::ValueId mask = outside_mask(context, axes.size(), d, axes[d], options);
    outside = outside == ir::kAbsent ? mask : c.binary("or", outside, mask);
  }
  if (outside != ir::kAbsent) x = c.where(outside, c.number(x, options.extrapolation), x);
  return c.cast(x, dtype);
}

ir::CheckedList<double> known_numbers(const NodeContext& context, size_t index, const char* what) {
  std::vector<double> values;
  if (!context.has_input(index)) return values;
  const Tensor& tensor = context.known(index, what);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.element_as_double(i));
  return values;
}

/// The smallest or largest of what each axis would be scaled by, which all of them are, as [1].
ir::ValueId common_scale(NodeContext& context, const std::vector<ResizeAxis>& axes,
                         const std::vector<size_t>& which, const ir::SymShape& sizes, const char* choose) {
  Compose c(context);
  const ir::ValueId like = c.doubles(DType::kFloat64, {1}, {1});
  ir::ValueId common = ir::kAbsent;
  for (size_t i = 0; i < which.size(); ++i) {
    const ir::ValueId own = c.div(c.extent(like, sizes[i]), c.extent(like, axes[which[i]].in));
    common = common == ir::kAbsent ? own : c.binary(choose, common, own);
  }
  return common;
}

/// What an axis of `in` becomes by that scale: rounding keeps the order, so that the smallest scale makes it
/// the smallest of what each would.
ir::SymInt scaled_alike(const ir::SymInt& in, const std::vector<ResizeAxis>& axes,
                        const std::vector<size_t>& which, const ir::SymShape& sizes, bool is_least) {
  ir::SymInt result;
  for (size_t i = 0; i < which.size(); ++i) {
    const ir::SymInt own = ir::call("rounded_by_ratio", {in, sizes[i], axes[which[i]].in});
    result = i == 0 ? own : is_least ? min(result, own) : max(result, own);
  }
  return result;
}

void set_sizes(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which,
               const ir::SymShape& sizes) {
  if (sizes.size() != which.size())
    context.invalid("sizes has " + std::to_string(sizes.size()) + " values for " +
                    std::to_string(which.size()) + " axes");
  const std::string policy = context.string_attr("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (size_t i = 0; i < which.size(); ++i) {
    ResizeAxis& axis = axes[which[i]];
    axis.scale = static_cast<double>(sizes[i].hint()) / static_cast<double>(axis.in.hint());
    axis.out = sizes[i];
    axis.by_size = policy == "stretch";
    const bool better = policy == "not_larger" ? axis.scale < common : axis.scale > common;
    if (i == 0 || better) common = axis.scale;
  }
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller")
    context.invalid("keep_aspect_ratio_policy is \"" + policy + "\"");
  const bool is_least = policy == "not_larger";
  const bool is_symbolic = !sizes.is_constant() || std::any_of(which.begin(), which.end(), [&](size_t axis) {
    return !axes[axis].in.is_constant();
  });
  const ir::ValueId computed =
      is_symbolic ? common_scale(context, axes, which, sizes, is_least ? "min" : "max") : ir::kAbsent;
  const std::vector<ResizeAxis> before = axes;
  for (size_t i = 0; i < which.size(); ++i) {
    ResizeAxis& axis = axes[which[i]];
    axis.scale = common;
    axis.out =
        is_symbolic
            ? scaled_alike(axis.in, before, which, sizes, is_least)
            : ir::SymInt(static_cast<int64_t>(std::round(common * static_cast<double>(axis.in.hint()))));
    axis.computed = computed;
  }
}

/// The part of the input that is read, by operand roi.
void set_parts(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which) {
  if (is_run_time_value(context, 1)) {
    set_dynamic_parts(context, axes, which);
    return;
  }
  const ir::CheckedList<double> roi = known_numbers(context, 1, "roi");
  if (roi.size() != 2 * which.size()) context.invalid("roi has " + std::to_string(roi.size()) + " values");
  for (const double number : roi) {
    if (!std::isfinite(number)) context.invalid("roi has " + std::to_string(number));
  }
  for (size_t i = 0; i < which.size(); ++i) {
    axes[which[i]].roi_start = roi[i];
    axes[which[i]].roi_end = roi[i + which.size()];
  }
}

void set_known_scales(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which,
                      const std::vector<double>& scales) {
  if (scales.size() != which.size())
    context.invalid("scales has " + std::to_string(scales.size()) + " values for " +
                    std::to_string(which.size()) + " axes");
  for (size_t i = 0; i < which.size(); ++i) set_scale(context, axes[which[i]], scales[i]);
}

/// By scales of which some depend on free dims.
void set_symbolic_scales(NodeContext& context, std::vector<ResizeAxis>& axes,
                         const std::vector<size_t>& which, ir::ValueId scales) {
  const ir::SymShape factors = context.known_symbolic(scales, "scales").elements();
  if (factors.size() != which.size())
    context.invalid("scales has " + std::to_string(factors.size()) + " values for " +
                    std::to_string(which.size()) + " axes");
  for (size_t i = 0; i < which.size(); ++i) {
    if (factors[i].is_constant()) {
      set_scale(context, axes[which[i]], float_of_code(factors[i].hint()).value_or(0));
    } else {
      set_symbolic_scale(context, axes[which[i]], factors[i],
                         row_element(context, scales, static_cast<int64_t>(i)));
    }
  }
}

void set_scales(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which,
                ir::ValueId scales) {
  if (context.is_computable(scales) && context.known_symbolic(scales, "scales").is_symbolic()) {
    set_symbolic_scales(context, axes, which, scales);
  } else if (context.is_computable(scales)) {
    const Tensor& known = context.known_value(scales, "scales");
    std::vector<double> numbers;
    for (int64_t i = 0; i < known.num_elements(); ++i) numbers.push_back(known.element_as_double(i));
    set_known_scales(context, axes, which, numbers);
  } else {
    set_dynamic_scales(context, axes, which, scales);
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
  if (options.coordinates == "tf_crop_and_resize") set_parts(context, axes, which);
  // An operand of no elements counts as not given.
  const bool has_scales = context.has_input(2) && num_elements(context.type(context.input(2)).shape) != 0;
  if (has_scales) {
    set_scales(context, axes, which, context.input(2));
  } else {
    set_sizes(context, axes, which, context.known_ints(3, "sizes"));
  }
  settle_axes(context, axes, which);
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
  options.nearest = build::kNearestByScale;
  std::vector<size_t> all;
  for (size_t i = 0; i < axes.size(); ++i) all.push_back(i);
  if (context.has_input(1)) {
    set_scales(context, axes, all, context.input(1));
  } else if (const AttributeProto* attribute = context.node().find("scales")) {
    set_known_scales(context, axes, all, {attribute->floats.begin(), attribute->floats.end()});
  } else if (context.opset() < 7 && axes.size() == 4) {
    const double height = context.float_attr("height_scale", 0), width = context.float_attr("width_scale", 0);
    set_known_scales(context, axes, all, {1, 1, height, width});
  } else {
    context.invalid("scales are missing");
  }
  settle_axes(context, axes, all);
  context.set_output(0, resize(context, axes, options));
}

}  // namespace tensormill::frontend::onnx
