// Expand and Tile, and Slice and Pad whose places a run works out.
#include "compiler/frontend/onnx/converters/counted_moves.h"

#include <algorithm>
#include <utility>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/counted.h"
#include "compiler/frontend/onnx/run_checks.h"

namespace tensormill::frontend::onnx {

void require_told_extents(const NodeContext& context) { static_cast<void>(context.data_shape_of(0)); }

// Extents that the run works out are the value's own, or those that it is repeated for.
void convert_expand(NodeContext& context) {
  Compose c(context);
  ir::ValueId x = context.input(0);
  BoundedShape shape = bounded_shape(context, 1);
  if (!shape.open.empty()) require_told_extents(context);
  std::vector<std::pair<size_t, BoundedInt>> repeated;
  for (const auto& [open, number] : shape.open) {
    const int64_t own =
        static_cast<int64_t>(open) - static_cast<int64_t>(shape.extents.size()) + context.rank(x);
    const int64_t extent = own < 0 ? 1 : c.shape(x)[static_cast<size_t>(own)];
    if (own >= 0 && is_count_of(context, number, x, own)) {
      shape.extents[open] = extent;
      continue;
    }
    if (extent == 1) {
      repeated.emplace_back(open, number);
      continue;
    }
    const ir::ValueId wanted = as_count(context, number);
    const ir::ValueId is_own = c.binary("equal", wanted, *count_along(context, context.input(0), own));
    x = value_if(context, x, c.binary("or", is_own, c.binary("equal", wanted, c.ints({1}, {1}))));
    shape.extents[open] = extent;
  }
  // A shape of fewer extents is one of the last ones.
  const int64_t missing = std::max<int64_t>(context.rank(x) - static_cast<int64_t>(shape.extents.size()), 0);
  ir::ValueId result = context.add("expand", {x}, {{"shape", shape.extents}});
  for (const auto& [open, number] : repeated)
    result = take_first(context, result, as_count(context, number), static_cast<int64_t>(open) + missing);
  context.set_output(0, result);
}

namespace {

/// As many copies of x along an axis as a run works out.
ir::ValueId copied(NodeContext& context, ir::ValueId x, int64_t axis, const BoundedInt& times) {
  Compose c(context);
  const ir::ValueId own = *count_along(context, x, axis);
  const int64_t extent = c.shape(x)[static_cast<size_t>(axis)];
  const int64_t most = context.product(extent, std::max<int64_t>(times.most, 0));
  const ir::ValueId from =
      context.add("mod", {c.ints(c.count_to(most), {most}), c.binary("max", own, c.ints({1}, {1}))},
                  {{"fmod", int64_t{0}}});
  return take_first(context, c.gather(filled_along(context, x, axis, "zero"), from, axis),
                    c.mul(own, as_count(context, times)), axis);
}

/// `times` copies of x along an axis, whose extent may be as data says.
ir::ValueId tiled(NodeContext& context, ir::ValueId x, const std::vector<int64_t>& repeats) {
  Compose c(context);
  std::vector<int64_t> rest = repeats;
  for (const DataExtent& extent : context.data_shape(x).extents) {
    if (extent.axis >= rest.size() || rest[extent.axis] == 1) continue;
    const int64_t times = std::exchange(rest[extent.axis], 1);
    const auto axis = static_cast<int64_t>(extent.axis);
    const int64_t most = context.product(c.shape(x)[extent.axis], times);
    const ir::ValueId count = c.binary("max", extent.count, c.ints({1}, {1}));
    const ir::ValueId from =
        context.add("mod", {c.ints(c.count_to(most), {most}), count}, {{"fmod", int64_t{0}}});
    x = take_first(context, c.gather(filled_along(context, x, axis, "zero"), from, axis),
                   c.mul(extent.count, c.ints({times}, {1})), axis);
  }
  return context.add("tile", {x}, {{"repeats", rest}});
}

}  // namespace

void convert_tile(NodeContext& context) {
  BoundedShape repeats = bounded_shape(context, 1);
  if (!repeats.open.empty()) require_told_extents(context);
  for (const auto& [axis, times] : repeats.open) repeats.extents[axis] = 1;
  ir::ValueId result = tiled(context, context.input(0), repeats.extents);
  for (const auto& [axis, times] : repeats.open)
    result = copied(context, result, static_cast<int64_t>(axis), times);
  context.set_output(0, result);
}

// Before opset 6: a number of copies along one axis.
void convert_tile_axis(NodeContext& context) {
  const ir::ValueId x = context.input(0);
  std::vector<int64_t> repeats(context.type(x).shape.size(), 1);
  const int64_t axis = context.normalize_axis(
      static_cast<int64_t>(context.known_scalar(2, "axis").element_as_double(0)), context.rank(x));
  repeats[static_cast<size_t>(axis)] =
      static_cast<int64_t>(context.known_scalar(1, "tiles").element_as_double(0));
  context.set_output(0, context.add("tile", {x}, {{"repeats", repeats}}));
}

namespace {

using V = ir::ValueId;

/// Element `at` of operand `index`, a vector of integers, as i64 [1].
V number_at(NodeContext& context, size_t index, int64_t at) {
  Compose c(context);
  return c.cast(c.slice(context.input(index), 0, at, 1), DType::kInt64);
}

V within(Compose& c, V x, V low, V high) { return c.binary("min", c.binary("max", x, low), high); }

/// Every step-th element of x from `first` on up to `stop`, both as the model says them.
V part_of(NodeContext& context, V x, int64_t axis, V first, V stop, int64_t step) {
  Compose c(context);
  const int64_t extent = c.shape(x)[static_cast<size_t>(axis)], size = step < 0 ? -step : step;
  const V count = *count_along(context, x, axis), none = c.ints({0}, {1});
  const auto from_front = [&](V at) { return c.where(c.binary("less", at, none), c.add(at, count), at); };
  // Going backwards there is a place in front of the first element at which to end.
  const V last = step < 0 ? c.minus(count, 1) : count;
  first = within(c, from_front(first), none, last);
  stop = within(c, from_front(stop), step < 0 ? c.ints({-1}, {1}) : none, last);
  const V way = c.plus(step < 0 ? c.sub(first, stop) : c.sub(stop, first), static_cast<double>(size - 1));
  const V taken = c.div(c.binary("max", way, none), c.ints({size}, {1}));
  const int64_t most = size == 1 ? extent : (extent + size - 1) / size;
  const V places = c.add(c.mul(c.ints(c.count_to(most), {most}), c.ints({step}, {1})), first);
  const V inside = within(c, places, none, c.ints({std::max<int64_t>(extent - 1, 0)}, {1}));
  if (extent == 0) return x;
  return take_first(context, c.gather(filled_along(context, x, axis, "zero"), inside, axis), taken, axis);
}

/// x with so many elements of `value` in front of and behind it as a run works out.
V padded_as_run(NodeContext& context, V x, int64_t axis, const BoundedInt& before, const BoundedInt& behind,
                V value) {
  Compose c(context);
  const V count = *count_along(context, x, axis), front = as_count(context, before);
  const V end = c.add(front, count);
  const BoundedInt total = bounded_value(context, c.add(end, as_count(context, behind)), "pads");
  const int64_t extent = c.shape(x)[static_cast<size_t>(axis)], most = std::max<int64_t>(total.most, 0);
  const V places = c.ints(c.count_to(most), {most});
  const V from = within(c, c.sub(places, front), c.ints({0}, {1}), c.ints({extent - 1}, {1}));
  const V is_inside =
      c.binary("and", c.binary("less", places, end), c.unary("not", c.binary("less", places, front)));
  Shape along(c.shape(x).size(), 1);
  along[static_cast<size_t>(axis)] = most;
  const V moved = c.gather(filled_along(context, x, axis, "zero"), from, axis);
  const V result = c.where(c.reshape(is_inside, along), moved, c.reshape(value, {}));
  return take_first(context, result, as_count(context, total), axis);
}

}  // namespace

void slice_as_run(NodeContext& context) {
  require_told_extents(context);
  V x = context.input(0);
  const int64_t rank = context.rank(x), number = num_elements(context.type(context.input(1)).shape);
  const auto list = [&](size_t index, const char* what) {
    return context.has_input(index) ? context.known_ints(index, what) : std::vector<int64_t>();
  };
  std::vector<int64_t> axes = list(3, "axes"), steps = list(4, "steps");
  if (!context.has_input(3)) {
    for (int64_t axis = 0; axis < std::min(number, rank); ++axis) axes.push_back(axis);
  }
  // There are no more axes than fit, whatever the number of starts is.
  const size_t given = axes.size();
  if (steps.empty()) steps.assign(given, 1);
  if (number != static_cast<int64_t>(given) || steps.size() != given ||
      num_elements(context.type(context.input(2)).shape) != number)
    context.invalid("starts, ends, axes and steps have different lengths");
  constexpr int64_t kMostStep = int64_t{1} << 31;
  for (size_t i = 0; i < given; ++i) {
    if (steps[i] == 0 || std::abs(steps[i]) > kMostStep)
      context.invalid("a step is " + std::to_string(steps[i]));
    const auto at = static_cast<int64_t>(i);
    x = part_of(context, x, context.normalize_axis(axes[i], rank), number_at(context, 1, at),
                number_at(context, 2, at), steps[i]);
  }
  context.set_output(0, x);
}

void pad_as_run(NodeContext& context) {
  require_told_extents(context);
  V x = context.input(0);
  const int64_t rank = context.rank(x);
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  if (context.has_input(3)) axes = context.known_ints(3, "axes");
  // What is mirrored or goes on takes its places from the element itself: known ones only.
  if (context.string_attr("mode", "constant") != "constant") {
    static_cast<void>(context.known_ints(1, "pads"));
    return;
  }
  const std::vector<BoundedInt> pads = bounded_ints(context, 1, "pads");
  if (pads.size() != 2 * axes.size())
    context.invalid("pads has " + std::to_string(pads.size()) + " values for " + std::to_string(axes.size()) +
                    " axes");
  const V value = context.has_input(2) ? context.input(2) : context.scalar_like(x, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const BoundedInt &before = pads[i], &behind = pads[i + axes.size()];
    if (before.is_known() && behind.is_known() && before.most == 0 && behind.most == 0) continue;
    x = padded_as_run(context, x, context.normalize_axis(axes[i], rank), before, behind, value);
  }
  context.set_output(0, x);
}

}  // namespace tensormill::frontend::onnx
