#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"

#include <algorithm>
#include <functional>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Of each row that says by 1 which numbers (i64 [n]) are its own their sum, i64 [rows].
V chosen(Compose& c, V rows, V numbers) {
  const V all = c.mul(rows, c.reshape(numbers, {1, c.shape(numbers)[0]}));
  return c.reduce("reduce_sum", all, {1}, false);
}

}  // namespace

bool is_static(const NodeContext& context, size_t index) {
  return context.is_known(index) || static_ints(context, context.input(index));
}

V NamedAxes::flag(NodeContext& context, int64_t axis) const {
  return Compose(context).slice(flags, 0, axis, 1);
}

V NamedAxes::by_axis(NodeContext& context, V numbers, int64_t otherwise) const {
  Compose c(context);
  return c.where(c.cast(flags, DType::kBool), chosen(c, places, numbers), c.dims({otherwise}, {1}));
}

NamedAxes named_axes(NodeContext& context, size_t index, int64_t rank) {
  Compose c(context);
  const V given = context.input(index);
  const ir::ValueType type = context.type(given);
  if (!is_integer(type.dtype) || type.shape.size() > 1) context.invalid("axes are " + ir::to_string(type));
  // How many they are says the rank of the result.
  if (!context.data_shape_of(index).extents.empty()) static_cast<void>(context.known_ints(index, "axes"));
  return axes_named_by(context, c.reshape(c.cast(given, DType::kInt64), {num_elements(type.shape)}), rank);
}

NamedAxes axes_named_by(NodeContext& context, V given, int64_t rank) {
  Compose c(context);
  NamedAxes axes;
  axes.number = c.shape(given)[0];
  axes.given = given;
  if (axes.number > rank)
    context.invalid(std::to_string(axes.number) + " axes of rank " + std::to_string(rank));
  const V numbers = c.reshape(given, {1, axes.number}), none = c.ints({0}, {1});
  const V from_front =
      c.where(c.binary("less", numbers, none), c.plus(numbers, static_cast<double>(rank)), numbers);
  axes.places = c.cast(c.binary("equal", from_front, c.iota(rank, {rank, 1})), DType::kInt64);
  const V flags = c.reduce("reduce_max", axes.places, {1}, false);
  // An axis that is none, or that stands twice, is one less.
  const V named = c.reduce("reduce_sum", flags, {0}, true);
  const std::string range = std::to_string(-rank) + " to " + std::to_string(rank - 1);
  const Check check{c.binary("equal", named, c.dims({axes.number}, {1})),
                    axes.number == 1 ? "axis {} is none of " + range
                                     : "axes {} are not each one of " + range + ", and none twice",
                    {given}};
  axes.flags = c.add(flags, zero_if(context, check));
  return axes;
}

V with_capacity(NodeContext& context, V x) {
  const ir::SymShape shape = context.type(x).shape;
  for (int64_t d = 0; d < context.rank(x); ++d) {
    if (shape[static_cast<size_t>(d)] == 0)
      x = take_first(context, longer_by(context, x, 1, d), context.int64_constant({0}), d);
  }
  return x;
}

V places_of(NodeContext& context, const std::vector<DynamicAxis>& axes) {
  Compose c(context);
  V places = c.ints({0}, ir::SymShape(axes.size(), 1));
  for (size_t d = 0; d < axes.size(); ++d) {
    ir::SymShape along(axes.size(), 1);
    along[d] = axes[d].most;
    places = c.add(places, c.mul(c.iota(axes[d].most, along), axes[d].stride));
  }
  return places;
}

V taken_at(NodeContext& context, V x, V places, const std::vector<DynamicAxis>& axes) {
  Compose c(context);
  V flat = filled_behind(context, x, "zero");
  flat = c.reshape(flat, {num_elements(c.shape(flat))});
  // Of no elements there is no place that stands for those that are not taken.
  if (c.shape(flat)[0] == 0) flat = longer_by(context, flat, 1, 0);
  const V last = c.dims({c.shape(flat)[0] - 1}, {1});
  V result = c.gather(flat, c.binary("min", c.binary("max", places, c.ints({0}, {1})), last), 0);
  for (size_t d = 0; d < axes.size(); ++d)
    if (axes[d].count != ir::kAbsent)
      result = take_first(context, result, axes[d].count, static_cast<int64_t>(d));
  return result;
}

V dynamic_extents(NodeContext& context, V x) {
  require_known_extents(context);
  Compose c(context);
  std::vector<V> counts;
  for (int64_t d = 0; d < context.rank(x); ++d) counts.push_back(*count_along(context, x, d));
  return counts.empty() ? c.ints({}, {0}) : c.concat(std::move(counts), 0);
}

namespace {

/// How far apart elements are along each axis of a shape, as it is stored.
std::vector<int64_t> strides_of(const NodeContext& context, const ir::SymShape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = context.product(strides[d], std::max<int64_t>(shape[d], 1));
  return strides;
}

/// Which one of those that are not named each axis is, i64 [rank]; -1 where it is named.
V places_among_others(NodeContext& context, V flags) {
  Compose c(context);
  const ir::SymInt rank = c.shape(flags)[0];
  const V named = context.add("cumsum", {flags}, {{"axis", int64_t{0}}});
  const V places = c.sub(c.iota(rank), named);
  return c.where(c.cast(flags, DType::kBool), c.ints({-1}, {1}), places);
}

/// The axes of a result, each of them one of those of x from `first(axis)` to `last(axis)`, or one of the
/// extent 1 where `may_be_one`.
std::vector<DynamicAxis> axes_among(NodeContext& context, const ir::SymShape& stored, V counts, V strides,
                                    const std::function<std::pair<int64_t, int64_t>(int64_t)>& range,
                                    bool may_be_one) {
  Compose c(context);
  std::vector<DynamicAxis> axes;
  for (int64_t j = 0; j < c.shape(counts)[0]; ++j) {
    const auto [first, last] = range(j);
    DynamicAxis axis;
    axis.most = may_be_one ? 1 : 0;
    for (int64_t d = first; d <= last; ++d) {
      const int64_t own = stored[static_cast<size_t>(d)];
      axis.most = max(axis.most, own);
    }
    axis.count = c.binary("min", c.slice(counts, 0, j, 1), c.dims({axis.most}, {1}));
    axis.stride = c.slice(strides, 0, j, 1);
    axes.push_back(axis);
  }
  return axes;
}

}  // namespace

namespace {

/// 0, i64 [1], that a run has whose axes are right.
V none_of(Compose& c, const NamedAxes& axes) {
  const V most = c.reduce("reduce_max", axes.flags, {0}, true);
  return c.sub(most, most);
}

}  // namespace

V without_axes(NodeContext& context, V x, V counts, const NamedAxes& axes) {
  Compose c(context);
  const ir::SymShape stored = c.shape(x);
  const int64_t rank = context.rank(x), number = axes.number, kept = rank - number;
  if (kept == 0)
    return value_with(context, c.reshape(taken_at(context, x, c.ints({0}, {1}), {}), {}), none_of(c, axes));
  const V places = c.reshape(places_among_others(context, axes.flags), {1, rank});
  const V is_own = c.cast(c.binary("equal", places, c.iota(kept, {kept, 1})), DType::kInt64);
  const V strides = c.ints(strides_of(context, stored), {rank});
  const std::vector<DynamicAxis> own = axes_among(
      context, stored, chosen(c, is_own, counts), chosen(c, is_own, strides),
      [&](int64_t j) { return std::pair(j, j + number); }, false);
  return taken_at(context, x, places_of(context, own), own);
}

V with_axes(NodeContext& context, V x, const NamedAxes& axes) {
  Compose c(context);
  const ir::SymShape stored = c.shape(x);
  const int64_t own_rank = context.rank(x), rank = own_rank + axes.number;
  if (own_rank == 0)
    return value_with(context, c.reshape(x, ir::SymShape(static_cast<size_t>(rank), 1)), none_of(c, axes));
  const V places = c.reshape(places_among_others(context, axes.flags), {rank, 1});
  const V is_own = c.cast(c.binary("equal", places, c.iota(own_rank, {1, own_rank})), DType::kInt64);
  const V strides = c.ints(strides_of(context, stored), {own_rank});
  const V counts = c.add(chosen(c, is_own, dynamic_extents(context, x)), axes.flags);
  const std::vector<DynamicAxis> own = axes_among(
      context, stored, counts, chosen(c, is_own, strides),
      [&](int64_t i) { return std::pair(std::max<int64_t>(i - axes.number, 0), std::min(i, own_rank - 1)); },
      true);
  return taken_at(context, x, places_of(context, own), own);
}

}  // namespace tensormill::frontend::onnx
