#include "compiler/frontend/onnx/converters/windows/dynamic_resize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/build/pictures/resize_nodes.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "compiler/ir/sym_float.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// The input's extent as [1] of the type.
V in_number(Compose& c, const ResizeAxis& axis, DType dtype) {
  return c.cast(axis.dynamic_in == ir::kAbsent ? c.dims({axis.in}, {1}) : axis.dynamic_in, dtype);
}

/// How large an axis becomes (a float, as [1]).
void set_out(NodeContext& context, ResizeAxis& axis, V out, const char* what) {
  Compose c(context);
  out = checked_number(context, out, is_within(context, out, 0, static_cast<double>(kMaxListed)),
                       std::string(what) + " make an axis of {} elements");
  const BoundedInt extent = bounded_value(context, c.cast(out, DType::kInt64), what, 0);
  axis.out = max(extent.most, 0);
  axis.dynamic_out = as_count(context, extent);
}

V checked_scale(NodeContext& context, V scale) {
  Compose c(context);
  return checked_number(context, scale, c.binary("greater", scale, c.number(scale, 0)),
                        "a scale is {}, expected above 0");
}

/// What the axis becomes by its scale, of a run or of an extent that data decides.
void set_scaled(NodeContext& context, ResizeAxis& axis) {
  Compose c(context);
  const bool is_computed = axis.computed != ir::kAbsent;
  if (is_computed) axis.computed = checked_scale(context, axis.computed);
  const V scale = is_computed ? axis.computed : c.doubles(DType::kFloat32, {axis.scale}, {1});
  // In float32, as other runtimes have it: the product may round up to the next integer.
  const V out = c.unary("floor", c.mul(in_number(c, axis, DType::kFloat32), scale));
  if (is_computed) {
    set_out(context, axis, out, "scales");
  } else {
    axis.dynamic_out = c.cast(out, DType::kInt64);
  }
}

void check_number(const NodeContext& context, V numbers, const std::vector<size_t>& which, const char* what) {
  const ir::SymShape& shape = context.type(numbers).shape;
  if (shape != ir::SymShape{static_cast<int64_t>(which.size())})
    context.invalid(std::string(what) + " has shape " + to_string(shape) + " for " +
                    std::to_string(which.size()) + " axes");
}

bool is_stretched(const NodeContext& context) {
  const std::string policy = context.string_attr("keep_aspect_ratio_policy", "stretch");
  if (policy != "not_larger" && policy != "not_smaller" && policy != "stretch")
    context.invalid("keep_aspect_ratio_policy is \"" + policy + "\"");
  return policy == "stretch";
}

}  // namespace

std::vector<ResizeAxis> axes_of(NodeContext& context) {
  const V x = context.input(0);
  std::vector<ResizeAxis> axes;
  for (const ir::SymInt& extent : context.type(x).shape) {
    axes.emplace_back();
    axes.back().in = axes.back().out = extent;
  }
  for (const DataExtent& extent : context.data_shape(x).extents) axes[extent.axis].dynamic_in = extent.count;
  return axes;
}

void set_scale(const NodeContext& context, ResizeAxis& axis, double scale) {
  // In float32, as other runtimes have it: the product may round up to the next integer.
  const double out = std::floor(static_cast<float>(axis.in.hint()) * static_cast<float>(scale));
  if (!(scale > 0) || !(out <= static_cast<double>(kMaxListed)))
    context.invalid("scale " + std::to_string(scale) + " of an axis of " + to_string(axis.in));
  axis.scale = scale;
  // float32 has such products up to there exactly.
  const bool is_whole = scale >= 1 && scale <= 64 && scale == std::floor(scale);
  if (is_whole && !axis.in.is_constant() &&
      demand(ir::Relation::kLessEqual, axis.in * static_cast<int64_t>(scale), kMaxListed)) {
    axis.out = axis.in * static_cast<int64_t>(scale);
    return;
  }
  axis.out = axis.in.is_constant() ? ir::SymInt(static_cast<int64_t>(out))
                                   : ir::call("scaled", {axis.in, factor_bits(static_cast<float>(scale))});
}

void set_symbolic_scale(NodeContext& context, ResizeAxis& axis, const ir::SymInt& factor, V scale) {
  axis.out = ir::floor_of_product(axis.in, factor);
  if (!demand(ir::Relation::kLess, 0, factor) || !demand(ir::Relation::kLessEqual, axis.out, kMaxListed))
    context.invalid("scale of an axis of " + to_string(axis.in));
  axis.scale = float_of_code(factor.hint()).value();
  axis.computed = Compose(context).cast(scale, DType::kFloat32);
}

void set_dynamic_scales(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which,
                        V scales) {
  Compose c(context);
  check_number(context, scales, which, "scales");
  for (size_t i = 0; i < which.size(); ++i) {
    ResizeAxis& axis = axes[which[i]];
    const V scale = row_element(context, scales, static_cast<int64_t>(i));
    if (context.is_computable(scale)) {
      set_scale(context, axis, context.known_value(scale, "scales").element_as_double(0));
    } else {
      axis.computed = c.cast(scale, DType::kFloat32);
    }
  }
}

bool are_sizes_dynamic(NodeContext& context, const std::vector<ResizeAxis>& axes,
                       const std::vector<size_t>& which) {
  // One of which it can be told by the shapes that it comes from is known.
  if (!context.is_known(3) && !static_ints(context, context.input(3))) return true;
  return std::any_of(which.begin(), which.end(),
                     [&](size_t axis) { return axes[axis].dynamic_in != ir::kAbsent; }) &&
         !is_stretched(context);
}

namespace {

/// All axes become as large as one scale makes them, with which none is larger, or smaller, than its size.
void set_dynamic_aspect(NodeContext& context, std::vector<ResizeAxis>& axes,
                        const std::vector<size_t>& which) {
  Compose c(context);
  const bool is_least = context.string_attr("keep_aspect_ratio_policy", "") == "not_larger";
  V common = ir::kAbsent;
  for (size_t i = 0; i < which.size(); ++i) {
    const V size = row_element(context, context.input(3), static_cast<int64_t>(i));
    const V in = in_number(c, axes[which[i]], DType::kFloat64);
    const V scale = c.div(c.cast(size, DType::kFloat64), in);
    common = common == ir::kAbsent ? scale : c.binary(is_least ? "min" : "max", common, scale);
  }
  common = checked_scale(context, common);
  for (const size_t d : which) {
    if (axes[d].in < 1) context.invalid("an axis of no elements has no aspect ratio");
    axes[d].computed = common;
    const V out = c.unary("floor", c.plus(c.mul(common, in_number(c, axes[d], DType::kFloat64)), 0.5));
    set_out(context, axes[d], out, "sizes");
  }
}

}  // namespace

void set_dynamic_sizes(NodeContext& context, std::vector<ResizeAxis>& axes,
                       const std::vector<size_t>& which) {
  Compose c(context);
  check_number(context, context.input(3), which, "sizes");
  if (!is_stretched(context)) {
    set_dynamic_aspect(context, axes, which);
    return;
  }
  for (size_t i = 0; i < which.size(); ++i) {
    ResizeAxis& axis = axes[which[i]];
    const V size = c.cast(row_element(context, context.input(3), static_cast<int64_t>(i)), DType::kInt64);
    axis.by_size = true;
    if (context.is_computable(size)) {
      axis.out = context.known_value(size, "sizes").element_as_int(0);
      axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
      continue;
    }
    // Nothing becomes of no elements.
    const int64_t most = axis.in == 0 ? 0 : kMaxListed;
    const int64_t least = axis.in != 0 && axis.dynamic_in == ir::kAbsent ? 1 : 0;
    const BoundedInt extent = bounded_count(context, size, most, "sizes", least);
    axis.out = max(extent.most, 0);
    axis.dynamic_out = as_count(context, extent);
  }
}

void set_dynamic_parts(NodeContext& context, std::vector<ResizeAxis>& axes,
                       const std::vector<size_t>& which) {
  Compose c(context);
  const V roi = context.input(1);
  const ir::SymShape& shape = c.shape(roi);
  if (shape != ir::SymShape{static_cast<int64_t>(2 * which.size())})
    context.invalid("roi has shape " + to_string(shape) + " for " + std::to_string(which.size()) + " axes");
  const V numbers = c.cast(roi, DType::kFloat64);
  for (size_t i = 0; i < which.size(); ++i) {
    ResizeAxis& axis = axes[which[i]];
    const auto number = [&](size_t at) {
      const V own = c.slice(numbers, 0, static_cast<int64_t>(at), 1);
      constexpr double kMost = std::numeric_limits<float>::max();
      return checked_number(context, own, is_within(context, own, -kMost, kMost), "roi has {}");
    };
    axis.dynamic_start = number(i);
    axis.dynamic_span = c.sub(number(i + which.size()), axis.dynamic_start);
  }
}

namespace {

/// A run fails in which an axis of no elements is to become one of some, or one of some elements none.
void check_not_empty(NodeContext& context, ResizeAxis& axis) {
  Compose c(context);
  const V zero = c.ints({0}, {1});
  const V out = axis.dynamic_out == ir::kAbsent ? c.dims({axis.out}, {1}) : axis.dynamic_out;
  const auto is_some = [&](V extent) { return c.cast(c.binary("less", zero, extent), DType::kInt64); };
  const Check check{c.binary("equal", is_some(axis.dynamic_in), is_some(out)),
                    "an axis of {} cannot become one of {}",
                    {axis.dynamic_in, out}};
  axis.dynamic_in = c.add(axis.dynamic_in, zero_if(context, check));
}

}  // namespace

void settle_axes(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which) {
  for (const size_t d : which) {
    ResizeAxis& axis = axes[d];
    const bool is_data_dependent = axis.dynamic_in != ir::kAbsent;
    const bool is_scaled = axis.computed != ir::kAbsent && !context.is_computable(axis.computed);
    const bool is_moved = is_data_dependent && (axis.by_size || axis.scale != 1 || !axis.is_whole());
    axis.is_dynamic =
        is_scaled || axis.dynamic_out != ir::kAbsent || axis.dynamic_start != ir::kAbsent || is_moved;
    if (axis.is_dynamic && axis.dynamic_out == ir::kAbsent && !axis.by_size &&
        (is_scaled || is_data_dependent))
      set_scaled(context, axis);
    if (axis.is_dynamic && axis.by_size && is_data_dependent) check_not_empty(context, axis);
  }
}

V dynamic_resize(Compose& c, V x, int64_t dim, const ResizeAxis& axis, const ResizeOptions& options) {
  if (axis.in == 0) {
    ir::SymShape shape = c.shape(x);
    shape[static_cast<size_t>(dim)] = axis.out;
    return c.filled(c.dtype(x), shape, 0);
  }
  const bool is_listed = has_formula(axis, options);
  const V resized = (is_listed ? build::resize_by_nodes : build::resize_by_product)(c, x, dim, axis, options);
  return unless_left(c, x, resized, dim, axis, options);
}

V unless_left(Compose& c, V x, V resized, int64_t dim, const ResizeAxis& axis, const ResizeOptions& options) {
  if (options.mode == "nearest") return resized;
  // What is left as it is may have infinities beside it.
  const V own = c.binary("min", c.iota(axis.out), c.dims({axis.in - 1}, {1}));
  return c.where(is_left(c, axis, options), c.gather(x, own, dim), resized);
}

V data_dependent_axes(NodeContext& context, V x, const std::vector<ResizeAxis>& axes) {
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].dynamic_out != ir::kAbsent)
      x = take_first(context, x, axes[d].dynamic_out, static_cast<int64_t>(d));
  }
  return x;
}

}  // namespace tensormill::frontend::onnx
