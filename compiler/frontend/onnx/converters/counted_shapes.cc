// Reshape to a shape, and Squeeze and Unsqueeze of axes, that a run works out.
#include <algorithm>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/counted_moves.h"
#include "compiler/frontend/onnx/converters/run_axes.h"
#include "compiler/frontend/onnx/converters/run_numbers.h"
#include "compiler/frontend/onnx/counted.h"
#include "compiler/frontend/onnx/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// A number within [0, most] times `factor`, or `most` where that is more; all i64 [1].
V product_up_to(Compose& c, V number, V factor, V most) {
  return c.binary("min", c.mul(number, c.binary("min", c.binary("max", factor, c.ints({0}, {1})), most)),
                  most);
}

/// What the model's numbers of a shape stand for: i64 [their number], of as many elements as x has.
V resolved_extents(NodeContext& context, V x, V wanted) {
  Compose c(context);
  const int64_t rank = c.shape(wanted)[0], own_rank = context.rank(x);
  const V own = extents_of_run(context, x), zero = c.ints({0}, {1}), one = c.ints({1}, {1});
  V extents = wanted;
  if (context.int_attr("allowzero", 0) == 0) {
    // Where there is no axis to be the same as there is no such extent.
    const V same = rank <= own_rank ? c.slice(own, 0, 0, rank)
                                    : c.concat({own, c.filled(DType::kInt64, {rank - own_rank}, -2)}, 0);
    extents = c.where(c.binary("equal", wanted, zero), same, wanted);
  }
  const V is_rest = c.binary("equal", extents, c.ints({-1}, {1}));
  const V rests = c.reduce("reduce_sum", c.cast(is_rest, DType::kInt64), {0}, true);
  const V listed = c.where(is_rest, one, extents);
  const V elements = c.reduce("reduce_prod", own_rank == 0 ? one : own, {0}, true),
          most = c.plus(elements, 1);
  V product = one;
  for (int64_t i = 0; i < rank; ++i) product = product_up_to(c, product, c.slice(listed, 0, i, 1), most);
  const V rest = c.div(elements, c.binary("max", product, one)), has_rest = c.binary("equal", rests, one);
  const V all = c.where(has_rest, c.mul(product, rest), product);
  const V is_whole = c.binary("and", c.binary("equal", all, elements),
                              c.binary("or", c.unary("not", has_rest), c.binary("less", zero, product)));
  const V are_extents = c.binary("less_equal", zero, c.reduce("reduce_min", listed, {0}, true));
  const V holds = c.binary("and", c.binary("and", is_whole, are_extents), c.binary("less_equal", rests, one));
  const Check check{holds, "shape {} is none of {} elements, of shape {}", {wanted, elements, own}};
  return c.add(c.where(is_rest, rest, extents), zero_if(context, check));
}

}  // namespace

namespace {

/// The axis of the result for extent `at` of the shape that the model gives, which is resolved to `own`.
RunAxis reshaped_axis_of(NodeContext& context, const BoundedInt& given, int64_t at, V own) {
  const V x = context.input(0);
  if (given.is_known() && given.most > 0) return {given.most};
  if (given.is_known() && given.most == 0 && context.int_attr("allowzero", 0) != 0) return {0};
  if (given.is_known() && given.most == 0 && at < context.rank(x)) {
    const DataShape data = context.data_shape(x);
    const DataExtent* same = data.along(at);
    return {context.type(x).shape[static_cast<size_t>(at)], same == nullptr ? ir::kAbsent : same->count};
  }
  // Numbers that are not known may be 0 or -1.
  const bool is_extent = !given.is_known() && !given.grows && given.least > 0;
  const BoundedInt extent = is_extent ? given : bounded_value(context, own, "shape");
  return {extent.most, as_count(context, extent)};
}

}  // namespace

void reshape_as_run(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0);
  require_told_extents(context);
  const std::vector<BoundedInt> given = bounded_ints(context, 1, "shape");
  const auto rank = static_cast<int64_t>(given.size());
  if (!context.data_shape_of(1).extents.empty()) static_cast<void>(context.known(1, "shape"));
  const V wanted = c.reshape(c.cast(context.input(1), DType::kInt64), {rank});
  const V extents = resolved_extents(context, x, wanted);
  std::vector<RunAxis> axes(given.size());
  V stride = c.ints({1}, {1});
  for (int64_t i = rank - 1; i >= 0; --i) {
    const V own = c.slice(extents, 0, i, 1);
    RunAxis& axis = axes[static_cast<size_t>(i)];
    axis = reshaped_axis_of(context, given[static_cast<size_t>(i)], i, own);
    axis.stride = stride;
    stride = c.mul(stride, own);
  }
  // What is there of x stands close together.
  const V flat = counted_reshape(context, x, {num_elements(c.shape(x))});
  context.set_output(0, taken_at(context, flat, places_of(context, axes), axes));
}

void squeeze_as_run(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0);
  require_told_extents(context);
  const Shape shape = c.shape(x);
  const V counts = extents_of_run(context, x);
  NamedAxes axes = named_axes(context, 1, context.rank(x));
  const V is_long = c.cast(c.unary("not", c.binary("equal", counts, c.ints({1}, {1}))), DType::kInt64);
  const V longer = c.reduce("reduce_max", c.mul(is_long, axes.flags), {0}, true);
  const V zero = zero_if(context, {c.binary("equal", longer, c.ints({0}, {1})),
                                   "axes {} of shape {} are not all of one element",
                                   {axes.given, counts}});
  // Where no others can be meant, what is left is known.
  const bool is_fixed =
      !context.is_sample() && num_elements(shape) != 0 && context.data_shape(x).extents.empty();
  if (is_fixed && std::count(shape.begin(), shape.end(), 1) == axes.number) {
    Shape others = shape;
    std::erase(others, 1);
    return context.set_output(0, value_with(context, c.reshape(x, others), zero));
  }
  axes.flags = c.add(axes.flags, zero);
  context.set_output(0, without_axes(context, x, counts, axes));
}

void unsqueeze_as_run(NodeContext& context) {
  require_told_extents(context);
  const int64_t added = num_elements(context.type(context.input(1)).shape);
  const NamedAxes axes = named_axes(context, 1, context.rank(context.input(0)) + added);
  context.set_output(0, with_axes(context, context.input(0), axes));
}

}  // namespace tensormill::frontend::onnx
