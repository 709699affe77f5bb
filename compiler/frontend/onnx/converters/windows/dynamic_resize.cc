#include "compiler/frontend/onnx/converters/windows/dynamic_resize.h"

#include <cmath>
#include <limits>

#include "compiler/build/pictures/resize_nodes.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "compiler/ir/sym_float.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// What the axis becomes by a scale of the run.
void set_scaled(NodeContext& context, ResizeAxis& axis) {
  Compose c(context);
  axis.computed =
      checked_number(context, axis.computed, c.binary("greater", axis.computed, c.number(axis.computed, 0)),
                     "a scale is {}, expected above 0");
  // In float32, as other runtimes have it: the product may round up to the next integer.
  V out = c.unary("floor", c.mul(c.cast(c.dims({axis.in}, {1}), DType::kFloat32), axis.computed));
  out = checked_number(context, out, is_within(context, out, 0, static_cast<double>(kMaxListed)),
                       "scales make an axis of {} elements");
  axis.out = context.symbolic_ints(c.cast(out, DType::kInt64), "scales", 0).at(0);
}

}  // namespace

std::vector<ResizeAxis> axes_of(NodeContext& context) {
  std::vector<ResizeAxis> axes;
  for (const ir::SymInt& extent : context.type(context.input(0)).shape) {
    axes.emplace_back();
    axes.back().in = axes.back().out = extent;
  }
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
  const ir::SymShape& shape = c.shape(scales);
  if (shape != ir::SymShape{static_cast<int64_t>(which.size())})
    context.invalid("scales has shape " + to_string(shape) + " for " + std::to_string(which.size()) +
                    " axes");
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

void settle_axes(NodeContext& context, std::vector<ResizeAxis>& axes, const std::vector<size_t>& which) {
  const DataShape shape = context.data_shape(context.input(0));
  for (const size_t d : which) {
    ResizeAxis& axis = axes[d];
    const bool is_scaled = axis.computed != ir::kAbsent && !context.is_computable(axis.computed);
    const bool is_moved = is_scaled || axis.by_size || axis.scale != 1 || !axis.is_whole();
    if (is_moved && shape.along(static_cast<int64_t>(d)) != nullptr)
      context.require_bound_extents(context.input(0));
    axis.is_dynamic = is_scaled || axis.dynamic_start != ir::kAbsent;
    if (is_scaled && !axis.by_size) set_scaled(context, axis);
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

}  // namespace tensormill::frontend::onnx
