// Pad whose pads, or the axes that they belong to, and CenterCropPad whose shape a run works out.
#include <algorithm>
#include <optional>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_moves.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

using V = ir::ValueId;

V within(NodeContext& context, V x, V low, V high) {
  Compose c(context);
  return c.binary("min", c.binary("max", x, low), high);
}

V moved_along(NodeContext& context, V x, int64_t axis, V front, const BoundedInt& total, V value) {
  Compose c(context);
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)], most = max(total.most, 0);
  const V end = c.add(front, *count_along(context, x, axis));
  const V places = c.iota(most);
  const V from = within(context, c.sub(places, front), c.ints({0}, {1}), c.dims({extent - 1}, {1}));
  const V is_inside =
      c.binary("and", c.binary("less", places, end), c.unary("not", c.binary("less", places, front)));
  ir::SymShape along(c.shape(x).size(), 1);
  along[static_cast<size_t>(axis)] = most;
  const V moved = c.gather(filled_along(context, x, axis, "zero"), from, axis);
  const V result = c.where(c.reshape(is_inside, along), moved, c.reshape(value, {}));
  return total.is_known() ? result : take_first(context, result, as_count(context, total), axis);
}

V continued_along(NodeContext& context, V x, int64_t axis, V before, V behind, const ir::SymInt& most,
                  const std::string& mode) {
  Compose c(context);
  const V count = *count_along(context, x, axis), none = c.ints({0}, {1}), one = c.ints({1}, {1});
  const auto in_period = [&](V at, V period) {
    return context.add("mod", {at, c.binary("max", period, one)}, {{"fmod", int64_t{0}}});
  };
  // What goes on is what negative pads leave.
  const V cut = c.binary("min", before, none), left = c.add(c.add(count, cut), c.binary("min", behind, none));
  const V last = c.sub(left, one);
  V from = c.sub(c.iota(most), c.binary("max", before, none));
  if (mode == "wrap") {
    from = in_period(from, left);
  } else if (mode == "reflect") {
    const V there_and_back = c.add(last, last), place = in_period(from, there_and_back);
    from = c.binary("min", place, c.sub(there_and_back, place));
  } else {
    from = within(context, from, none, last);
  }
  const V total = c.add(c.add(before, count), behind);
  // Of nothing nothing goes on.
  const V is_none = c.binary("and", c.binary("equal", left, none), c.binary("equal", total, none));
  const V holds = c.binary("or", is_none, c.binary("less", none, left));
  from = within(context, c.sub(from, cut), none, c.dims({c.shape(x)[static_cast<size_t>(axis)] - 1}, {1}));
  const Check check{
      holds,
      "pads of {} and {} leave nothing of axis " + std::to_string(axis) + ", of {}, that goes on",
      {before, behind, count}};
  from = c.add(from, zero_if(context, check));
  const V all = c.gather(filled_along(context, x, axis, "zero"), from, axis);
  const ir::KnownValue& known = context.graph().value(total).known;
  if (known && same(known.elements().at(0), most)) return all;
  return take_first(context, all, c.binary("max", total, none), axis);
}

namespace {

/// The pads of one axis, i64 [1].
struct AxisPads {
  int64_t axis = 0;
  V before = ir::kAbsent, behind = ir::kAbsent;
};

/// A pad; a run fails in which it is out of all bounds.
V checked_pad(NodeContext& context, V pad) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (context.is_computable(pad)) return pad;
  const BoundedInts bounds = bounds_of(context, pad);
  if (bounds && bounds->front().least >= -kMost && bounds->front().most <= kMost) return pad;
  constexpr auto kLimit = static_cast<double>(kMost);
  return checked_number(context, pad, is_within(context, pad, -kLimit, kLimit),
                        "a pad is {}, expected " + std::to_string(-kMost) + " to " + std::to_string(kMost));
}

std::vector<AxisPads> pads_of_named_axes(NodeContext& context, int64_t rank) {
  Compose c(context);
  const NamedAxes axes = named_axes(context, 3, rank);
  const V pads = numbers_of(context, 1, 2 * axes.number, "pads");
  const V before = axes.by_axis(context, c.slice(pads, 0, 0, axes.number), 0);
  const V behind = axes.by_axis(context, c.slice(pads, 0, axes.number, axes.number), 0);
  std::vector<AxisPads> result;
  for (int64_t d = 0; d < rank; ++d) {
    result.push_back({d, c.slice(before, 0, d, 1), c.slice(behind, 0, d, 1)});
  }
  return result;
}

std::vector<AxisPads> dynamic_pads(NodeContext& context, int64_t rank) {
  if (context.has_input(3) && !is_static(context, 3)) return pads_of_named_axes(context, rank);
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  if (context.has_input(3)) axes = context.known_ints(3, "axes");
  const std::vector<BoundedInt> pads = bounded_ints(context, 1, "pads");
  if (pads.size() != 2 * axes.size())
    context.invalid("pads has " + std::to_string(pads.size()) + " values for " + std::to_string(axes.size()) +
                    " axes");
  std::vector<AxisPads> result;
  for (size_t i = 0; i < axes.size(); ++i) {
    const BoundedInt &before = pads[i], &behind = pads[i + axes.size()];
    if (before.is_known() && behind.is_known() && before.most == 0 && behind.most == 0) continue;
    result.push_back(
        {context.normalize_axis(axes[i], rank), as_count(context, before), as_count(context, behind)});
  }
  return result;
}

}  // namespace

void dynamic_pad(NodeContext& context) {
  Compose c(context);
  require_known_extents(context);
  V x = with_capacity(context, context.input(0));
  const std::string mode = context.string_attr("mode", "constant");
  const V value = context.has_input(2) ? context.input(2) : context.scalar_like(x, 0);
  for (const AxisPads& pads : dynamic_pads(context, context.rank(x))) {
    const V before = checked_pad(context, pads.before), behind = checked_pad(context, pads.behind);
    const V count = *count_along(context, x, pads.axis);
    const V sum = c.add(c.add(before, count), behind), none = c.ints({0}, {1});
    // Pads of a run may take elements away.
    const V is_short = c.binary("less", sum, none);
    const Check fits{c.unary("not", is_short),
                     "pads of {} and {} take more away than axis " + std::to_string(pads.axis) + " has, {}",
                     {before, behind, count}};
    const BoundedInt total =
        bounded_value(context, c.add(c.where(is_short, none, sum), zero_if(context, fits)), "pads", 0);
    if (mode == "constant") {
      x = moved_along(context, x, pads.axis, before, total, value);
    } else {
      x = continued_along(context, x, pads.axis, before, behind, max(total.most, 0), mode);
    }
  }
  context.set_output(0, x);
}

V centered(NodeContext& context, V x, int64_t axis, const BoundedInt& wanted) {
  Compose c(context);
  const V extent = as_count(context, wanted);
  const V before = c.div(c.sub(extent, *count_along(context, x, axis)), c.ints({2}, {1}));
  return moved_along(context, x, axis, before, wanted, context.scalar_like(x, 0));
}

namespace {

/// One of a shape's numbers; a run fails in which it is less than 0.
BoundedInt dynamic_extent(NodeContext& context, const BoundedInt& given) {
  Compose c(context);
  if (given.is_known()) {
    if (given.most < 0) context.invalid("shape has " + std::to_string(given.most));
    return given;
  }
  const V extent = as_count(context, given), holds = c.binary("less_equal", c.ints({0}, {1}), extent);
  return bounded_value(context, checked_number(context, extent, holds, "an extent is {}, expected 0 or more"),
                       "shape");
}

}  // namespace

void dynamic_center_crop_pad(NodeContext& context) {
  require_known_extents(context);
  V x = with_capacity(context, context.input(0));
  const int64_t rank = context.rank(x);
  const std::vector<BoundedInt> wanted = bounded_ints(context, 1, "shape");
  const std::vector<int64_t> axes = context.ints_attr("axes", Compose(context).count_to(rank));
  if (axes.size() != wanted.size())
    context.invalid("shape has " + std::to_string(wanted.size()) + " values for " +
                    std::to_string(axes.size()) + " axes");
  for (size_t i = 0; i < axes.size(); ++i)
    x = centered(context, x, context.normalize_axis(axes[i], rank), dynamic_extent(context, wanted[i]));
  context.set_output(0, x);
}

namespace {

/// The map of an unpooling, cut or padded to a wanted shape whose numbers are symbols.
V map_in_symbolic_shape(NodeContext& context, V map, size_t index) {
  Compose c(context);
  const ir::SymShape shape = c.shape(map);
  const ir::SymShape wanted = context.symbolic_ints(context.input(index), "output_shape", 0);
  bool fits = wanted.size() == shape.size();
  for (size_t d = 0; fits && d < std::min<size_t>(2, shape.size()); ++d)
    fits = demand(ir::Relation::kEqual, wanted[d], shape[d]);
  if (!fits) context.invalid("output_shape is " + to_string(wanted) + " for shape " + to_string(shape));
  ir::SymShape pads(2 * shape.size(), 0);
  for (size_t d = 2; d < shape.size(); ++d) {
    const ir::SymInt taken = min(shape[d], wanted[d]);
    map = c.slice(map, static_cast<int64_t>(d), 0, taken);
    pads[d + shape.size()] = wanted[d] - taken;
  }
  return context.add("pad", {map}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
}

}  // namespace

V map_in_dynamic_shape(NodeContext& context, V map, size_t index) {
  if (context.binds_symbols()) return map_in_symbolic_shape(context, map, index);
  Compose c(context);
  const ir::SymShape shape = c.shape(map);
  const std::vector<BoundedInt> wanted = bounded_ints(context, index, "output_shape");
  if (wanted.size() != shape.size())
    context.invalid("output_shape has " + std::to_string(wanted.size()) + " values for shape " +
                    to_string(shape));
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    const V none = c.ints({0}, {1}), value = context.scalar_like(map, 0);
    if (d >= 2) {
      map = moved_along(context, map, axis, none, dynamic_extent(context, wanted[d]), value);
      continue;
    }
    const V given = as_count(context, wanted[d]), own = c.dims({shape[d]}, {1});
    const Check check{c.binary("equal", given, own), "output_shape has {}, expected {}", {given, own}};
    map = moved_along(context, map, axis, zero_if(context, check), {shape[d]}, value);
  }
  return map;
}

}  // namespace tensormill::frontend::onnx
