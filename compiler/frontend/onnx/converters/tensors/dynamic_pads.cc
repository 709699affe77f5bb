// Pad of axes that a run names, and maps in shapes that it works out.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_moves.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

using V = ir::ValueId;

V within(NodeContext& context, V x, V low, V high) {
  Compose c(context);
  return c.binary("min", c.binary("max", x, low), high);
}

V continued_along(NodeContext& context, V x, int64_t axis, V before, V behind, const ir::SymInt& total,
                  const std::string& mode) {
  Compose c(context);
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
  const V count = c.dims({extent}, {1}), none = c.ints({0}, {1}), one = c.ints({1}, {1});
  const auto in_period = [&](V at, V period) {
    return context.add("mod", {at, c.binary("max", period, one)}, {{"fmod", int64_t{0}}});
  };
  // What goes on is what negative pads leave.
  const V cut = c.binary("min", before, none), left = c.add(c.add(count, cut), c.binary("min", behind, none));
  const V last = c.sub(left, one);
  V from = c.sub(c.iota(total), c.binary("max", before, none));
  if (mode == "wrap") {
    from = in_period(from, left);
  } else if (mode == "reflect") {
    const V there_and_back = c.add(last, last), place = in_period(from, there_and_back);
    from = c.binary("min", place, c.sub(there_and_back, place));
  } else {
    from = within(context, from, none, last);
  }
  // Of nothing nothing goes on.
  const V is_none =
      c.binary("and", c.binary("equal", left, none), c.binary("equal", c.dims({total}, {1}), none));
  const V holds = c.binary("or", is_none, c.binary("less", none, left));
  from = within(context, c.sub(from, cut), none, c.dims({extent - 1}, {1}));
  const Check check{
      holds,
      "pads of {} and {} leave nothing of axis " + std::to_string(axis) + ", of {}, that goes on",
      {before, behind, count}};
  return c.gather(x, c.add(from, zero_if(context, check)), axis);
}

namespace {

/// Element i is that of x at i - `front` (i64 [1]) along the axis, or `value` where there is none; `total` of
/// them.
V moved_along(NodeContext& context, V x, int64_t axis, V front, const ir::SymInt& total, V value) {
  Compose c(context);
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
  const V end = c.add(front, c.dims({extent}, {1})), places = c.iota(total);
  const V from = within(context, c.sub(places, front), c.ints({0}, {1}), c.dims({extent - 1}, {1}));
  const V is_inside =
      c.binary("and", c.binary("less", places, end), c.unary("not", c.binary("less", places, front)));
  ir::SymShape along(c.shape(x).size(), 1);
  along[static_cast<size_t>(axis)] = total;
  return c.where(c.reshape(is_inside, along), c.gather(x, from, axis), c.reshape(value, {}));
}

}  // namespace

V centered(NodeContext& context, V x, int64_t axis, const ir::SymInt& wanted) {
  Compose c(context);
  const V missing = c.sub(c.dims({wanted}, {1}), c.dims({c.shape(x)[static_cast<size_t>(axis)]}, {1}));
  return moved_along(context, x, axis, c.div(missing, c.ints({2}, {1})), wanted, context.scalar_like(x, 0));
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

}  // namespace

void dynamic_pad(NodeContext& context) {
  Compose c(context);
  context.require_bound_extents(context.input(0));
  V x = with_capacity(context, context.input(0));
  const std::string mode = context.string_attr("mode", "constant");
  const V value = context.has_input(2) ? context.input(2) : context.scalar_like(x, 0);
  for (const AxisPads& pads : pads_of_named_axes(context, context.rank(x))) {
    const V before = checked_pad(context, pads.before), behind = checked_pad(context, pads.behind);
    const V count = c.dims({c.shape(x)[static_cast<size_t>(pads.axis)]}, {1});
    const V sum = c.add(c.add(before, count), behind), none = c.ints({0}, {1});
    // Pads of a run may take elements away.
    const V is_short = c.binary("less", sum, none);
    const Check fits{c.unary("not", is_short),
                     "pads of {} and {} take more away than axis " + std::to_string(pads.axis) + " has, {}",
                     {before, behind, count}};
    const V number = c.add(c.where(is_short, none, sum), zero_if(context, fits));
    const ir::SymInt total = context.symbolic_ints(number, "pads", 0).at(0);
    x = mode == "constant" ? moved_along(context, x, pads.axis, before, total, value)
                           : continued_along(context, x, pads.axis, before, behind, total, mode);
  }
  context.set_output(0, x);
}

V map_in_run_shape(NodeContext& context, V map, size_t index) {
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

}  // namespace tensormill::frontend::onnx
