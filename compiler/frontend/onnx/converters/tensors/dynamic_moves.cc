// Expand and Tile, and Slice and Split whose places a run works out.
#include "compiler/frontend/onnx/converters/tensors/dynamic_moves.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

/// x as it broadcasts along an axis whose extent data decides, to as many elements as the number says.
ir::ValueId spread_to(NodeContext& context, ir::ValueId x, int64_t axis, const BoundedInt& number) {
  Compose c(context);
  ir::ValueId line = c.filled(DType::kUInt8, {max(number.most, 0)}, 0);
  if (!number.is_known()) line = take_first(context, line, no_less_than(context, number, 0, "an extent"), 0);
  std::vector<ir::ValueId> operands{x, line};
  make_broadcast(context, operands, {{0, axis}, {1, 0}});
  return operands[0];
}

}  // namespace

// Extents that the run works out are the value's own, or those that it is repeated for.
void convert_expand(NodeContext& context) {
  Compose c(context);
  const std::vector<BoundedInt> numbers = bounded_ints(context, 1, "shape");
  const bool is_open =
      std::any_of(numbers.begin(), numbers.end(), [](const BoundedInt& each) { return !each.is_known(); });
  if (is_open) require_known_extents(context);
  ir::ValueId x = context.input(0);
  const auto rank = static_cast<int64_t>(numbers.size());
  std::vector<std::pair<int64_t, BoundedInt>> repeated;
  ir::SymShape extents;
  for (int64_t i = 0; i < rank; ++i) {
    const BoundedInt& number = numbers[static_cast<size_t>(i)];
    const int64_t own = i - rank + context.rank(x);
    const ir::SymInt extent = own < 0 ? ir::SymInt(1) : c.shape(x)[static_cast<size_t>(own)];
    extents.push_back(number.most);
    if (own >= 0 && context.data_shape(x).along(own) != nullptr && extent != 1) {
      const bool is_kept = number.is_known() ? number.most == 1 : is_count_of(context, number, x, own);
      if (!is_kept) x = spread_to(context, x, own, number);
      if (!number.is_known()) extents.back() = c.shape(x)[static_cast<size_t>(own)];
    } else if (!number.is_known() && extent == 1) {
      repeated.emplace_back(i, number);
    } else if (!number.is_known()) {
      const ir::ValueId wanted = as_count(context, number), fixed = c.dims({extent}, {1});
      x = value_if(
          context, x,
          {c.binary("or", c.binary("equal", wanted, fixed), c.binary("equal", wanted, c.ints({1}, {1}))),
           "an extent is {} where axis " + std::to_string(own) + " has {} elements",
           {wanted, fixed}});
      extents.back() = extent;
    }
  }
  // A shape of fewer extents is one of the last ones.
  const int64_t missing = std::max<int64_t>(context.rank(x) - rank, 0);
  ir::ValueId result = context.add("expand", {x}, {{"shape", extents}});
  for (const auto& [open, number] : repeated)
    result = take_first(context, result, no_less_than(context, number, 0, "an extent"), open + missing);
  context.set_output(0, result);
}

ir::ValueId no_less_than(NodeContext& context, const BoundedInt& number, int64_t least, const char* what) {
  constexpr int64_t kMost = int64_t{1} << 31;
  Compose c(context);
  const ir::ValueId count = as_count(context, number);
  if (number.is_known() || (number.least >= least && number.most <= kMost)) return count;
  const ir::ValueId holds = c.binary("and", c.binary("less_equal", c.dims({least}, {1}), count),
                                     c.binary("less_equal", count, c.dims({kMost}, {1})));
  const std::string expected = " is {}, expected " + std::to_string(least) + " to " + std::to_string(kMost);
  return checked_number(context, count, holds, what + expected);
}

void convert_tile(NodeContext& context) {
  const ir::ValueId x = context.input(0);
  const ir::SymShape repeats = context.known_ints(1, "repeats");
  for (const DataExtent& extent : context.data_shape(x).extents) {
    if (extent.axis < repeats.size() && !same(repeats[extent.axis], 1)) context.require_bound_extents(x);
  }
  context.set_output(0, context.add("tile", {x}, {{"repeats", repeats}}));
}

// Before opset 6: a number of copies along one axis, both of the type of x.
void convert_tile_axis(NodeContext& context) {
  Compose c(context);
  ir::ValueId x = context.input(0);
  const int64_t rank = context.rank(x);
  if (context.is_known(1) && context.is_known(2)) {
    std::vector<int64_t> repeats(context.type(x).shape.size(), 1);
    const auto axis = static_cast<int64_t>(context.known_scalar(2, "axis").element_as_double(0));
    repeats[static_cast<size_t>(context.normalize_axis(axis, rank))] =
        static_cast<int64_t>(context.known_scalar(1, "tiles").element_as_double(0));
    return context.set_output(0, context.add("tile", {x}, {{"repeats", repeats}}));
  }
  context.require_bound_extents(x);
  const NamedAxes axes = axes_named_by(context, numbers_of(context, 2, 1, "axis"), rank);
  const ir::ValueId number = numbers_of(context, 1, 1, "tiles");
  const ir::ValueId is_some = c.unary("not", c.binary("less", number, c.ints({0}, {1})));
  const ir::ValueId tiles = checked_number(context, number, is_some, "a number of repeats is {}");
  for (int64_t d = 0; d < rank; ++d) {
    const ir::ValueId times = c.where(c.cast(axes.flag(context, d), DType::kBool), tiles, c.ints({1}, {1}));
    ir::SymShape repeats(static_cast<size_t>(rank), 1);
    repeats[static_cast<size_t>(d)] = context.symbolic_ints(times, "tiles", 0).at(0);
    x = context.add("tile", {x}, {{"repeats", repeats}});
  }
  context.set_output(0, x);
}

namespace {

using V = ir::ValueId;

/// How far apart the elements of a slice are: `known`, or i64 [1] of a run, in which it is not 0.
struct SliceStep {
  std::optional<int64_t> known;
  V value = ir::kAbsent;
};

SliceStep known_step(NodeContext& context, int64_t step) {
  if (step == 0) context.invalid("a step is 0");
  step = std::clamp(step, -kMostStep, kMostStep);
  return {step, context.int64_constant({step})};
}

SliceStep dynamic_step(NodeContext& context, V step) {
  Compose c(context);
  const V is_step = c.unary("not", c.binary("equal", step, c.ints({0}, {1})));
  const V least = c.dims({-kMostStep}, {1}), most = c.dims({kMostStep}, {1});
  return {std::nullopt, within(context, checked_number(context, step, is_step, "a step is {}"), least, most)};
}

/// Every step-th element of x from `first` on up to `stop`, both as the model says them.
V part_of(NodeContext& context, V x, int64_t axis, V first, V stop, const SliceStep& step) {
  Compose c(context);
  const V none = c.ints({0}, {1}), one = c.ints({1}, {1}), before = c.ints({-1}, {1});
  const V is_back = step.known ? ir::kAbsent : c.binary("less", step.value, none);
  const auto by_way = [&](V backward, V forward) {
    return step.known ? (*step.known < 0 ? backward : forward) : c.where(is_back, backward, forward);
  };
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)], known = step.known.value_or(1);
  const V size = c.binary("max", by_way(c.sub(none, step.value), step.value), one);
  const V count = *count_along(context, x, axis);
  const auto from_front = [&](V at) { return c.where(c.binary("less", at, none), c.add(at, count), at); };
  // Going backwards there is a place in front of the first element at which to end.
  const V last = by_way(c.minus(count, 1), count);
  first = within(context, from_front(first), none, last);
  stop = within(context, from_front(stop), by_way(before, none), last);
  const V way = c.minus(c.add(by_way(c.sub(first, stop), c.sub(stop, first)), size), 1);
  const V taken = c.div(c.binary("max", way, none), size);
  const int64_t most = (extent + std::abs(known) - 1) / std::abs(known);
  const V places = c.add(c.mul(c.iota(most), step.value), first);
  const V inside = within(context, places, none, c.dims({extent - 1}, {1}));
  return take_first(context, c.gather(filled_along(context, x, axis, "zero"), inside, axis), taken, axis);
}

/// Slice of axes that the run names.
V slice_of_named_axes(NodeContext& context, V x) {
  Compose c(context);
  const int64_t rank = context.rank(x);
  const NamedAxes axes = named_axes(context, 3, rank);
  const auto by_axis = [&](size_t index, const char* what, int64_t otherwise) {
    return axes.by_axis(context, numbers_of(context, index, axes.number, what), otherwise);
  };
  const V starts = by_axis(1, "starts", 0), ends = by_axis(2, "ends", std::numeric_limits<int64_t>::max());
  const V steps = context.has_input(4) ? by_axis(4, "steps", 1) : ir::kAbsent;
  for (int64_t d = 0; d < rank; ++d) {
    const SliceStep step =
        steps == ir::kAbsent ? known_step(context, 1) : dynamic_step(context, c.slice(steps, 0, d, 1));
    x = part_of(context, x, d, c.slice(starts, 0, d, 1), c.slice(ends, 0, d, 1), step);
  }
  return x;
}

}  // namespace

void dynamic_slice(NodeContext& context) {
  Compose c(context);
  require_known_extents(context);
  V x = with_capacity(context, context.input(0));
  if (context.has_input(3) && !is_static(context, 3))
    return context.set_output(0, slice_of_named_axes(context, x));
  const ir::SymInt rank = context.rank(x), number = num_elements(context.type(context.input(1)).shape);
  ir::Ints axes = context.has_input(3) ? context.known_ints(3, "axes") : ir::SymShape();
  if (!context.has_input(3)) {
    for (int64_t axis = 0; axis < std::min(number, rank); ++axis) axes.push_back(axis);
  }
  // There are no more axes than fit, whatever the number of starts is.
  const auto given = static_cast<int64_t>(axes.size());
  const V starts = numbers_of(context, 1, given, "starts"), ends = numbers_of(context, 2, given, "ends");
  const bool has_steps = context.has_input(4), are_static = !has_steps || is_static(context, 4);
  const V steps = has_steps ? numbers_of(context, 4, given, "steps") : ir::kAbsent;
  const ir::Ints known =
      has_steps && are_static ? context.known_ints(4, "steps") : ir::SymShape(axes.size(), 1);
  for (int64_t i = 0; i < given; ++i) {
    const auto at = static_cast<size_t>(i);
    const SliceStep step =
        are_static ? known_step(context, known[at]) : dynamic_step(context, c.slice(steps, 0, i, 1));
    x = part_of(context, x, context.normalize_axis(axes[at], rank), c.slice(starts, 0, i, 1),
                c.slice(ends, 0, i, 1), step);
  }
  context.set_output(0, x);
}

V lengths_of_parts(NodeContext& context, V lengths, V count, const ir::SymInt& extent) {
  Compose c(context);
  const V none = c.ints({0}, {1}), past = c.dims({extent + 1}, {1});
  // One that is too long makes the sum so.
  const V within_sum = within(context, lengths, none, past);
  const V least = c.reduce("reduce_min", lengths, {0}, true);
  const V total = c.reduce("reduce_sum", within_sum, {0}, true);
  const V fits = c.binary("and", c.binary("less_equal", none, least), c.binary("equal", total, count));
  const Check check{fits, "lengths {} of parts are no split of {} elements", {lengths, count}};
  return c.add(within(context, lengths, none, c.dims({extent}, {1})), zero_if(context, check));
}

namespace {

/// As long as all others but the last ones, which are shorter where the axis is no multiple: i64 [parts].
V even_lengths(NodeContext& context, V count, int64_t parts) {
  Compose c(context);
  const V number = c.dims({parts}, {1});
  const V size = c.div(c.add(count, c.dims({parts - 1}, {1})), number);
  const V left = c.sub(count, c.mul(c.iota(parts), size));
  return c.binary("min", c.binary("max", left, c.ints({0}, {1})), size);
}

}  // namespace

void dynamic_split(NodeContext& context) {
  Compose c(context);
  require_known_extents(context);
  const V x = with_capacity(context, context.input(0));
  const int64_t axis = context.normalize_axis(context.int_attr("axis", 0), context.rank(x));
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
  const auto parts = static_cast<int64_t>(context.num_outputs());
  const V count = *count_along(context, x, axis);
  const V lengths = context.has_input(1)
                        ? lengths_of_parts(context, numbers_of(context, 1, parts, "split"), count, extent)
                        : even_lengths(context, count, parts);
  const V ends = context.add("cumsum", {lengths}, {{"axis", int64_t{0}}}), starts = c.sub(ends, lengths);
  const V whole = filled_along(context, x, axis, "zero"), steps = c.iota(extent);
  for (int64_t i = 0; i < parts; ++i) {
    const V places = c.add(steps, c.slice(starts, 0, i, 1));
    const V part = c.gather(whole, c.binary("min", places, c.dims({extent - 1}, {1})), axis);
    context.set_output(static_cast<size_t>(i), take_first(context, part, c.slice(lengths, 0, i, 1), axis));
  }
}

}  // namespace tensormill::frontend::onnx
