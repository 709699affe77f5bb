// Elementwise operators and normalizations that are functions of simpler ones.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

void convert_celu(NodeContext& context) {
  Compose c(context);
  const double alpha = context.float_attr("alpha", 1.0);
  const ir::ValueId x = context.input(0);
  // max(0, x) + min(0, alpha * (e^(x/alpha) - 1)): of what is below 0, since the power would overflow above.
  const ir::ValueId below = c.div(c.binary("min", x, c.number(x, 0)), c.number(x, alpha));
  context.set_output(0, c.add(c.unary("relu", x), c.times(c.unary("expm1", below), alpha)));
}

namespace {

/// Shrink of 64-bit integers by an integer, all of whose digits stay.
ir::ValueId shrink_integers(Compose& c, ir::ValueId x, double bias, double lambda) {
  const ir::ValueId zero = c.number(x, 0);
  const ir::ValueId above = c.binary("greater", x, c.number(x, std::floor(lambda)));
  const ir::ValueId less = c.sub(x, c.cast(c.dims({static_cast<int64_t>(bias)}, {}), c.dtype(x)));
  const ir::ValueId positive = c.where(above, less, zero);
  if (c.dtype(x) == DType::kUInt64) return positive;
  const ir::ValueId below = c.binary("less", x, c.number(x, std::ceil(-lambda)));
  return c.where(below, c.plus(x, bias), positive);
}

}  // namespace

void convert_shrink(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const DType dtype = c.dtype(x);
  const double bias = context.float_attr("bias", 0.0), lambda = context.float_attr("lambd", 0.5);
  constexpr double kExact = 0x1p53;
  const bool is_wide = dtype == DType::kInt64 || dtype == DType::kUInt64;
  if (is_wide && bias == std::rint(bias) && std::fabs(bias) < kExact && lambda >= 0 && lambda < kExact)
    return context.set_output(0, shrink_integers(c, x, bias, lambda));
  const ir::ValueId wide = is_float(dtype) ? x : c.cast(x, DType::kFloat64);
  const ir::ValueId zero = c.number(wide, 0);
  const ir::ValueId above =
      c.where(c.binary("greater", wide, c.number(wide, lambda)), c.minus(wide, bias), zero);
  const ir::ValueId below = c.binary("less", wide, c.number(wide, -lambda));
  const ir::ValueId value = c.where(below, c.plus(wide, bias), above);
  // Less than an unsigned type holds wraps, as it does elsewhere.
  const bool wraps = is_integer(dtype) && dtype != DType::kUInt64;
  context.set_output(0, c.cast(wraps ? c.cast(value, DType::kInt64) : value, dtype));
}

void convert_thresholded_relu(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const ir::ValueId above = c.binary("greater", x, c.number(x, context.float_attr("alpha", 1.0)));
  context.set_output(0, c.where(above, x, c.number(x, 0)));
}

void convert_is_inf(NodeContext& context) {
  Compose c(context);
  // float32 has all values of the narrow types.
  const bool is_wide = !is_narrow(c.dtype(context.input(0)));
  const ir::ValueId x = is_wide ? context.input(0) : c.cast(context.input(0), DType::kFloat32);
  const bool negative = context.int_attr("detect_negative", 1) != 0;
  const bool positive = context.int_attr("detect_positive", 1) != 0;
  ir::ValueId result = c.unary("is_inf", x);
  if (!negative) result = c.binary("and", result, c.binary("greater", x, c.number(x, 0)));
  if (!positive) result = c.binary("and", result, c.binary("less", x, c.number(x, 0)));
  context.set_output(0, result);
}

// Opset 24: x * sigmoid(alpha * x).
void convert_swish(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  context.set_output(0, c.mul(x, c.unary("sigmoid", c.times(x, context.float_attr("alpha", 1.0)))));
}

// 1 at the first largest element of the axis; before opset 13 the axis and all behind it are one.
void convert_hardmax(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const ir::SymShape shape = c.shape(x);
  const ir::SymInt rank = static_cast<int64_t>(shape.size());
  const bool flat = context.opset() < 13;
  int64_t axis = context.normalize_axis(context.int_attr("axis", flat ? 1 : -1), rank);
  if (std::count(shape.begin(), shape.end(), 0) != 0) return context.set_output(0, x);
  ir::ValueId seen = x;
  if (flat) {
    ir::SymShape matrix{1, 1};
    for (int64_t i = 0; i < rank; ++i) {
      ir::SymInt& extent = matrix[i < axis ? 0 : 1];
      extent = context.product(extent, shape[static_cast<size_t>(i)]);
    }
    seen = c.reshape(x, matrix);
    axis = 1;
  }
  const ir::SymInt depth = c.shape(seen)[static_cast<size_t>(axis)];
  const ir::ValueId values = c.doubles(c.dtype(x), {0, 1}, {2});
  context.require_bound_extents(seen, axis);
  const ir::ValueId hot =
      context.add("one_hot", {c.arg_max(seen, axis, false), values}, {{"axis", axis}, {"depth", depth}});
  context.set_output(0, c.reshape(hot, shape));
}

void convert_mean_variance_normalization(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  ir::Ints axes = context.ints_attr("axes", {0, 2, 3});
  for (int64_t& axis : axes) axis = context.normalize_axis(axis, context.rank(x));
  const ir::ValueId centered = c.sub(x, c.reduce("reduce_mean", x, axes, true));
  const ir::ValueId variance = c.reduce("reduce_mean", c.mul(centered, centered), axes, true);
  context.set_output(0, c.div(centered, c.plus(c.unary("sqrt", variance), 1e-9)));
}

// Groups of channels are normalized as one; scale and bias are per channel, before opset 21 per group.
void convert_group_normalization(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  context.require_bound_extents(x, 1);
  const int64_t groups = context.required_int("num_groups");
  const ir::SymShape shape = c.shape(x);
  if (shape.size() < 2 || groups < 1 || !demand_divisible(shape[1], groups))
    context.invalid("shape " + to_string(shape) + " does not divide into " + std::to_string(groups) +
                    " groups");
  ir::SymShape grouped{shape[0], groups};
  if (shape[1].is_constant()) {
    grouped.push_back(floordiv(num_elements(ir::SymShape(shape.begin() + 1, shape.end())), groups));
  } else {
    // Axes of the run stay axes.
    grouped.push_back(shape[1] / groups);
    grouped.insert(grouped.end(), shape.begin() + 2, shape.end());
  }
  std::vector<int64_t> inner(grouped.size() - 2);
  std::iota(inner.begin(), inner.end(), 2);
  const ir::ValueId rows = c.cast(c.reshape(x, grouped), DType::kFloat32);
  const ir::ValueId centered = c.sub(rows, c.reduce("reduce_mean", rows, inner, true));
  const ir::ValueId variance = c.reduce("reduce_mean", c.mul(centered, centered), inner, true);
  const ir::ValueId deviation = c.unary("sqrt", c.plus(variance, context.float_attr("epsilon", 1e-5)));
  ir::ValueId result = c.cast(c.div(centered, deviation), c.dtype(x));
  const bool per_group = c.shape(context.input(1)) == ir::SymShape{groups} && context.opset() < 21;
  ir::SymShape along(per_group ? grouped.size() : shape.size(), 1);
  along[1] = per_group ? ir::SymInt(groups) : shape[1];
  if (!per_group) result = c.reshape(result, shape);
  result = c.mul(result, c.reshape(context.input(1), along));
  result = c.add(result, c.reshape(context.input(2), along));
  context.set_output(0, c.reshape(result, shape));
}

// Opset 23: x / sqrt(mean(x^2) + epsilon) * scale, computed in float32.
void convert_rms_normalization(NodeContext& context) {
  const int64_t rank = context.rank(context.input(0));
  const int64_t first = context.normalize_axis(context.int_attr("axis", -1), rank);
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < rank; ++axis) axes.push_back(axis);
  const ir::ValueId x = context.input(0);
  context.require_bound_extents(x, first);
  context.set_output(
      0, rms_normalized(context, x, context.input(1), std::move(axes), context.float_attr("epsilon", 1e-5)));
}

ir::ValueId rms_normalized(NodeContext& context, ir::ValueId x, ir::ValueId scale, std::vector<int64_t> axes,
                           double epsilon) {
  Compose c(context);
  const ir::ValueId wide = c.dtype(x) == DType::kFloat64 ? x : c.cast(x, DType::kFloat32);
  const ir::ValueId square = c.reduce("reduce_mean", c.mul(wide, wide), std::move(axes), true);
  const ir::ValueId scaled = c.div(wide, c.unary("sqrt", c.plus(square, epsilon)));
  return c.mul(c.cast(scaled, c.dtype(scale)), scale);
}

// X/(bias + alpha/size * sum of squares of `size` channels)^beta
void convert_lrn(NodeContext& context) {
  context.set_output(0, context.add("lrn", {context.input(0)},
                                    {{"size", context.required_int("size")},
                                     {"alpha", context.float_attr("alpha", 1e-4)},
                                     {"beta", context.float_attr("beta", 0.75)},
                                     {"bias", context.float_attr("bias", 1.0)}}));
}

void convert_lp_normalization(NodeContext& context) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const int64_t axis = context.normalize_axis(context.int_attr("axis", -1), context.rank(x));
  const int64_t p = context.int_attr("p", 2);
  if (p != 1 && p != 2) context.invalid("p is " + std::to_string(p) + ", expected 1 or 2");
  const ir::ValueId norm = c.reduce(p == 1 ? "reduce_l1" : "reduce_l2", x, {axis}, true);
  const ir::ValueId zero = c.number(norm, 0);
  context.set_output(0, c.where(c.binary("equal", norm, zero), zero, c.div(x, norm)));
}

namespace {

using Along = std::function<ir::ValueId(int64_t)>;

/// The result along the axis that the run says: of those along each.
ir::ValueId along_dynamic_axis(NodeContext& context, const Along& along) {
  Compose c(context);
  const ir::ValueId x = context.input(0);
  const int64_t rank = context.rank(x);
  if (rank == 0 || num_elements(c.shape(context.input(1))) != 1)
    context.invalid("x has shape " + to_string(c.shape(x)) + ", axis " +
                    to_string(c.shape(context.input(1))));
  const ir::ValueId given = c.cast(c.reshape(context.input(1), {1}), DType::kInt64);
  const ir::ValueId from_end = c.plus(given, static_cast<double>(rank));
  const ir::ValueId axis = c.where(c.binary("less", given, c.number(given, 0)), from_end, given);
  ir::ValueId result = x, is_axis = ir::kAbsent;
  for (int64_t d = 0; d < rank; ++d) {
    const ir::ValueId is_it = c.binary("equal", axis, c.number(axis, static_cast<double>(d)));
    result = c.where(is_it, along(d), result);
    is_axis = d == 0 ? is_it : c.binary("or", is_axis, is_it);
  }
  const std::string range = std::to_string(-rank) + " to " + std::to_string(rank - 1);
  return value_if(context, result, {is_axis, "axis {} is none of " + range, {given}});
}

}  // namespace

void convert_cumulative(NodeContext& context) {
  const bool is_sum = context.node().op_type == "CumSum";
  const ir::Attrs attrs{{"exclusive", int64_t{context.int_attr("exclusive", 0) != 0}},
                        {"reverse", int64_t{context.int_attr("reverse", 0) != 0}}};
  const Along along = [&](int64_t axis) {
    ir::Attrs own = attrs;
    own.set("axis", axis);
    return with_count(context, context.input(0), axis, is_sum ? "zero" : "one", [&](ir::ValueId all) {
      return context.add(is_sum ? "cumsum" : "cumprod", {all}, own);
    });
  };
  if (!context.is_known(1)) return context.set_output(0, along_dynamic_axis(context, along));
  const int64_t axis = context.known_scalar(1, "axis").element_as_int(0);
  context.set_output(0, along(context.normalize_axis(axis, context.rank(context.input(0)))));
}

}  // namespace tensormill::frontend::onnx
