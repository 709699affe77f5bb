// Operators that move elements: transpose, concat, split, slice, gather, pad.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "compiler/build/compose.h"
#include "compiler/build/moves/slices.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_moves.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::onnx {

namespace {

void add_slice(NodeContext& context, const ir::SymShape& starts, const ir::SymShape& ends,
               std::vector<int64_t> axes, std::vector<int64_t> steps) {
  const ir::SymShape& shape = context.type(context.input(0)).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    context.invalid("starts, ends, axes and steps have different lengths");
  }
  ir::SymShape all_starts(shape.size(), 0), extents(shape);
  std::vector<int64_t> all_steps(shape.size(), 1);
  std::vector<bool> is_sliced(shape.size(), false);
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t axis = static_cast<size_t>(context.normalize_axis(axes[i], rank));
    if (is_sliced[axis]) context.invalid("axis " + std::to_string(axes[i]) + " stands twice");
    is_sliced[axis] = true;
    if (steps[i] == 0) context.invalid("a step is 0");
    const build::AxisSlice slice = build::slice_within(starts[i], ends[i], steps[i], shape[axis]);
    all_starts[axis] = slice.start;
    extents[axis] = slice.extent;
    all_steps[axis] = slice.step;
  }
  ir::Attrs attrs{{"starts", all_starts}, {"extents", extents}, {"steps", all_steps}};
  context.set_output(0, context.add("slice", {context.input(0)}, attrs));
}

/// x without what negative pads take away; they become 0.
ir::ValueId without_cuts(NodeContext& context, ir::ValueId x, ir::SymShape& pads) {
  Compose c(context);
  const size_t rank = c.shape(x).size();
  if (pads.size() != 2 * rank) return x;
  for (size_t axis = 0; axis < rank; ++axis) {
    const ir::SymInt before = min(pads[axis], 0), behind = min(pads[axis + rank], 0);
    if (before == 0 && behind == 0) continue;
    const ir::SymInt extent = c.shape(x)[axis];
    if (before < -extent || behind < -extent - before)
      context.invalid("the pads take more than axis " + std::to_string(axis) + " has");
    x = c.slice(x, static_cast<int64_t>(axis), -before, extent + before + behind);
    pads[axis] -= before;
    pads[axis + rank] -= behind;
  }
  return x;
}

/// x with the reflections that are longer than an axis, there and back; their pads become 0.
ir::ValueId reflected_far(NodeContext& context, ir::ValueId x, ir::SymShape& pads) {
  Compose c(context);
  const size_t rank = c.shape(x).size();
  if (pads.size() != 2 * rank) return x;
  for (size_t axis = 0; axis < rank; ++axis) {
    ir::SymInt &before = pads[axis], &behind = pads[axis + rank];
    const ir::SymInt extent = c.shape(x)[axis];
    if (max(before, behind) == 0 || extent == 0 || max(before, behind) < extent) continue;
    if (max(before, behind) > kMaxListed)
      context.unsupported("pads", "pads of more than " + std::to_string(kMaxListed) + " are not implemented");
    const ir::ValueId front = c.dims({before}, {1}), back = c.dims({behind}, {1});
    x = continued_along(context, x, static_cast<int64_t>(axis), front, back, extent + before + behind,
                        "reflect");
    before = behind = 0;
  }
  return x;
}

void add_pad(NodeContext& context, ir::SymShape pads, ir::ValueId value, double attribute_value) {
  Compose c(context);
  ir::ValueId x = context.input(0);
  const std::string mode = context.string_attr("mode", "constant");
  const size_t rank = c.shape(x).size();
  for (const DataExtent& data : context.data_shape(x).extents) {
    const bool is_kept =
        pads.size() != 2 * rank || (same(pads[data.axis], 0) && same(pads[data.axis + rank], 0));
    if (!is_kept) context.require_bound_extents(x);
  }
  // What goes on is what negative pads leave.
  if (mode != "constant") x = without_cuts(context, x, pads);
  if (mode == "reflect") x = reflected_far(context, x, pads);
  ir::Attrs attrs{{"pads", pads}, {"mode", mode}};
  std::vector<ir::ValueId> inputs{x};
  if (value != ir::kAbsent) {
    inputs.push_back(value);
  } else {
    attrs.set("value", attribute_value);
  }
  context.set_output(0, context.add("pad", std::move(inputs), attrs));
}

}  // namespace

void convert_transpose(NodeContext& context) {
  const int64_t rank = context.rank(context.input(0));
  std::vector<int64_t> reversed;
  for (int64_t axis = rank - 1; axis >= 0; --axis) reversed.push_back(axis);
  const ir::Ints perm = context.ints_attr("perm", reversed);
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  std::reverse(reversed.begin(), reversed.end());
  if (sorted != reversed)
    context.invalid("perm " + to_string(perm) + " is no permutation of rank " + std::to_string(rank));
  context.set_output(0, context.add("transpose", {context.input(0)}, {{"perm", perm}}));
}

namespace {

bool is_data_dependent_along(NodeContext& context, ir::ValueId value, int64_t axis) {
  return context.data_shape(value).along(axis) != nullptr;
}

}  // namespace

void convert_concat(NodeContext& context) {
  std::vector<ir::ValueId> inputs;
  for (size_t i = 0; i < context.num_inputs(); ++i) inputs.push_back(context.input(i));
  if (inputs.empty()) context.invalid("a concat without operands");
  const int64_t axis =
      context.normalize_axis(context.opset() < 4 ? context.int_attr("axis", 1) : context.required_int("axis"),
                             context.rank(inputs[0]));
  for (int64_t other = 0; other < context.rank(inputs[0]); ++other) {
    std::vector<MeetingAxis> axes;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (context.rank(inputs[i]) > other) axes.push_back({i, other});
    }
    if (other != axis) make_same(context, inputs, axes);
  }
  context.set_output(0, data_dependent_concat(context, std::move(inputs), axis));
}

namespace {

/// In the first opset the operand has the type of the data.
ir::SymShape split_sizes(const NodeContext& context) {
  constexpr double kMost = 1e12;
  if (!context.has_input(1)) return context.ints_attr("split", {});
  if (context.opset() > 1) return context.known_ints(1, "split");
  const Tensor& given = context.known(1, "split");
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < given.num_elements(); ++i) {
    const double size =
        is_float(given.dtype()) ? given.element_as_double(i) : static_cast<double>(given.element_as_int(i));
    if (!(size >= 0 && size <= kMost)) context.invalid("split has " + std::to_string(size));
    sizes.push_back(static_cast<int64_t>(size));
  }
  return sizes;
}

}  // namespace

namespace {

/// Each part ends within the axis, of which sizes of a run are looked at that leave something for the last.
void demand_places(NodeContext& context, const ir::SymShape& sizes, ir::ValueId x, int64_t axis) {
  const ir::SymInt& extent = context.type(x).shape[static_cast<size_t>(axis)];
  ir::SymInt end = 0;
  for (const ir::SymInt& size : sizes) {
    end += size;
    if (!ir::demand(ir::Relation::kLessEqual, end, extent))
      context.invalid("split does not fit an axis of " + to_string(extent));
  }
}

}  // namespace

// Sizes are an attribute, in the first opset and from opset 13 on an operand; without them the parts are
// equal, the last one smaller.
void convert_split(NodeContext& context) {
  if (context.has_input(1) && !is_static(context, 1)) return dynamic_split(context);
  ir::ValueId x = context.input(0);
  const int64_t axis = context.normalize_axis(context.int_attr("axis", 0), context.rank(x));
  ir::SymShape sizes = split_sizes(context);
  if (sizes.empty() && context.data_shape(x).along(axis) != nullptr) return dynamic_split(context);
  ir::SymInt total = 0;
  int64_t sum = 0;
  const bool add_up = std::all_of(sizes.begin(), sizes.end(), [&](const ir::SymInt& size) {
    total += size;
    return size >= 0 && !__builtin_add_overflow(sum, size.hint(), &sum);
  });
  if (!sizes.empty() && add_up && !total.is_constant()) demand_places(context, sizes, x, axis);
  if (!sizes.empty() && add_up) x = with_extent(context, x, axis, total);
  const ir::SymInt extent = context.type(x).shape[static_cast<size_t>(axis)];
  const int64_t parts = static_cast<int64_t>(context.num_outputs());
  const bool is_even = sizes.empty();
  if (is_even) {
    // Ends rather than sizes, whose sum nobody has to prove.
    const ir::SymInt size = ceildiv(extent, parts);
    ir::SymInt before = 0;
    for (int64_t i = 1; i <= parts; ++i) {
      const ir::SymInt end = i == parts ? extent : min(i * size, extent);
      sizes.push_back(end - before);
      before = end;
    }
  }
  if (static_cast<int64_t>(sizes.size()) != parts) {
    context.invalid("split has " + std::to_string(sizes.size()) + " sizes for " + std::to_string(parts) +
                    " outputs");
  }
  ir::Attrs attrs{{"axis", axis}, {"sizes", sizes}};
  const std::vector<ir::ValueId> outputs = context.add_many("split", {x}, std::move(attrs));
  for (size_t i = 0; i < outputs.size(); ++i) context.set_output(i, outputs[i]);
}

void convert_slice_attrs(NodeContext& context) {
  add_slice(context, context.required_ints("starts"), context.required_ints("ends"),
            context.ints_attr("axes", {}), {});
}

namespace {

/// From element `start` on up to `end` along the axis, where the run works out the axis' extent or the end.
/// Throws ValueRequired where the former cannot be told.
ir::ValueId slice_data_dependent(NodeContext& context, ir::ValueId x, int64_t axis, int64_t start,
                                 const BoundedInt& end) {
  Compose c(context);
  static_cast<void>(context.data_shape_of(0));
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
  if (start < -extent) start = 0;
  const ir::ValueId count = *count_along(context, x, axis), none = c.ints({0}, {1});
  ir::ValueId stop = as_count(context, end);
  stop = c.where(c.binary("less", stop, none), c.add(stop, count), stop);
  const ir::ValueId first =
      start < 0 ? c.binary("max", c.plus(count, static_cast<double>(start)), none) : c.dims({start}, {1});
  const bool are_last = start < 0 && end.is_known() && end.most >= extent;
  const ir::ValueId taken =
      are_last ? c.binary("min", count, c.dims({-start}, {1})) : c.sub(c.binary("min", stop, count), first);
  // The most that can be taken, at which the result is stored.
  ir::SymInt most = start < 0 ? min(-start, extent) : max(extent - start, 0);
  const ir::ValueId whole = filled_along(context, x, axis, "zero");
  if (start >= 0 && end.most >= 0) most = max(min(end.most - start, most), 0);
  ir::ValueId part = ir::kAbsent;
  if (start >= 0) {
    part = c.slice(whole, axis, most == 0 ? 0 : start, most);
  } else {
    const ir::ValueId places = c.add(c.iota(most), first);
    part = c.gather(whole, c.binary("min", places, c.dims({extent - 1}, {1})), axis);
  }
  return take_first(context, part, taken, axis);
}

/// Every step-th element, from either end, of an axis whose extent is as data says.
ir::ValueId strided_data_dependent(NodeContext& context, ir::ValueId x, int64_t axis, int64_t start,
                                   int64_t end, int64_t step) {
  Compose c(context);
  step = std::clamp(step, -kMostStep, kMostStep);
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)], size = step < 0 ? -step : step;
  const ir::ValueId count = *count_along(context, x, axis), none = c.ints({0}, {1});
  const auto from_front = [&](int64_t at) {
    return at < 0 ? c.add(count, c.dims({at}, {1})) : c.dims({at}, {1});
  };
  const auto within = [&](ir::ValueId at, ir::ValueId low, ir::ValueId high) {
    return c.binary("min", c.binary("max", at, low), high);
  };
  // Going backwards there is a place in front of the first element at which to end.
  const ir::ValueId last = step < 0 ? c.minus(count, 1) : count;
  const ir::ValueId first = within(from_front(start), none, last);
  const ir::ValueId stop = within(from_front(end), step < 0 ? c.ints({-1}, {1}) : none, last);
  const ir::ValueId way = step < 0 ? c.sub(first, stop) : c.sub(stop, first);
  const ir::ValueId taken =
      c.binary("max", c.div(c.plus(way, static_cast<double>(size - 1)), c.dims({size}, {1})), none);
  const int64_t most = (extent - 1) / size + 1;
  const ir::ValueId places = c.add(c.mul(c.iota(most), c.dims({step}, {1})), first);
  const ir::ValueId inside = within(places, none, c.dims({extent - 1}, {1}));
  return take_first(context, c.gather(filled_along(context, x, axis, "zero"), inside, axis), taken, axis);
}

/// Slice of one axis whose extent the run works out; nothing where it takes all of it or data decides
/// nothing.
std::optional<ir::ValueId> data_dependent_slice(NodeContext& context) {
  const ir::ValueId x = context.input(0);
  const ir::SymShape starts = context.known_ints(1, "starts");
  if (starts.size() != 1 || num_elements(context.type(context.input(2)).shape) != 1) return std::nullopt;
  const int64_t rank = context.rank(x);
  const ir::Ints axes = context.has_input(3) ? context.known_ints(3, "axes") : ir::SymShape{0};
  const ir::Ints steps = context.has_input(4) ? context.known_ints(4, "steps") : ir::SymShape{1};
  if (axes.size() != 1 || steps.size() != 1) return std::nullopt;
  const int64_t axis = context.normalize_axis(axes[0], rank);
  const ir::SymInt extent = context.type(x).shape[static_cast<size_t>(axis)];
  const BoundedInt end = capped_int(context, 2, "ends", extent);
  const bool is_data_dependent = is_data_dependent_along(context, x, axis);
  if (steps[0] != 1) {
    const bool is_plain = is_data_dependent && end.is_known() && extent > 0 && steps[0] != 0;
    return is_plain ? std::optional(strided_data_dependent(context, x, axis, starts[0], end.most, steps[0]))
                    : std::nullopt;
  }
  if (!is_data_dependent && end.is_known()) return std::nullopt;
  if (is_data_dependent && end.is_known() && starts[0] == 0 && end.most >= extent) return std::nullopt;
  return slice_data_dependent(context, x, axis, starts[0], end);
}

}  // namespace

void convert_slice(NodeContext& context) {
  const bool is_one = num_elements(context.type(context.input(1)).shape) == 1;
  const auto is_open = [&](size_t index) { return context.has_input(index) && !is_static(context, index); };
  if (is_open(1) || (is_open(2) && !is_one) || is_open(3) || is_open(4)) return dynamic_slice(context);
  if (const std::optional<ir::ValueId> counted = data_dependent_slice(context)) {
    context.set_output(0, *counted);
    return;
  }
  const ir::SymShape starts = context.known_ints(1, "starts");
  const ir::SymShape ends = context.known_ints(2, "ends");
  add_slice(context, starts, ends, context.has_input(3) ? context.known_ints(3, "axes") : ir::SymShape{},
            context.has_input(4) ? context.known_ints(4, "steps") : ir::SymShape{});
}

namespace {

/// Negative indices into `count` elements as those from the front.
ir::ValueId counted_from_end(NodeContext& context, ir::ValueId indices, ir::ValueId count) {
  Compose c(context);
  const ir::ValueId wide = c.cast(indices, DType::kInt64);
  const ir::ValueId front = c.add(wide, c.reshape(count, {}));
  return c.where(c.binary("less", wide, c.number(wide, 0)), front, wide);
}

}  // namespace

void convert_gather(NodeContext& context) {
  const int64_t axis = context.normalize_axis(context.int_attr("axis", 0), context.rank(context.input(0)));
  const std::string op = context.node().op_type == "Gather" ? "gather" : "gather_elements";
  const ir::ValueId x = filled_along(context, context.input(0), axis, "zero");
  ir::ValueId indices = context.input(1);
  if (x != context.input(0))
    indices = counted_from_end(context, indices, *count_along(context, context.input(0), axis));
  if (op == "gather_elements" && context.rank(indices) == context.rank(x)) {
    const ir::SymShape own = context.type(x).shape, given = context.type(indices).shape;
    for (const DataExtent& extent : context.data_shape(indices).extents) {
      const bool is_longer =
          static_cast<int64_t>(extent.axis) != axis && given[extent.axis] > own[extent.axis];
      if (is_longer) context.require_bound_extents(indices);
    }
    // The operator takes no others, and says so.
    for (size_t d = 0; d < own.size(); ++d) {
      if (static_cast<int64_t>(d) != axis)
        static_cast<void>(demand(ir::Relation::kLessEqual, given[d], own[d]));
    }
  }
  context.set_output(0, context.add(op, {x, indices}, {{"axis", axis}}));
}

void convert_pad_attrs(NodeContext& context) {
  add_pad(context, context.required_ints(context.opset() < 2 ? "paddings" : "pads"), ir::kAbsent,
          context.float_attr("value", 0));
}

void convert_pad(NodeContext& context) {
  if (context.has_input(3) && !is_static(context, 3)) return dynamic_pad(context);
  const ir::SymShape given = context.known_ints(1, "pads");
  const int64_t rank = context.rank(context.input(0));
  ir::SymShape pads = given;
  // From opset 18 on the pads may be given for some axes only.
  if (context.has_input(3)) {
    const ir::Ints axes = context.known_ints(3, "axes");
    if (given.size() != 2 * axes.size())
      context.invalid("pads has " + std::to_string(given.size()) + " values for " +
                      std::to_string(axes.size()) + " axes");
    pads.assign(static_cast<size_t>(2 * rank), 0);
    std::vector<bool> is_padded(static_cast<size_t>(rank), false);
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = context.normalize_axis(axes[i], rank);
      if (is_padded[static_cast<size_t>(axis)])
        context.invalid("axis " + std::to_string(axes[i]) + " stands twice");
      is_padded[static_cast<size_t>(axis)] = true;
      pads[static_cast<size_t>(axis)] = given[i];
      pads[static_cast<size_t>(axis + rank)] = given[i + axes.size()];
    }
  }
  add_pad(context, pads, context.optional_input(2), 0);
}

}  // namespace tensormill::frontend::onnx
