#include "compiler/build/moves/moves.h"

#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/build/moves/slices.h"
#include "runtime/base/error.h"

namespace tensormill::build {

using V = ir::ValueId;

ir::SymShape settled_shape(OpBuilder& builder, const ir::SymShape& from, ir::SymShape to) {
  ir::SymInt others = 1;
  std::optional<size_t> open;
  for (size_t d = 0; d < to.size(); ++d) {
    if (same(to[d], -1)) {
      if (open) builder.invalid("the shape " + to_string(to) + " has -1 twice");
      open = d;
    } else {
      others = builder.product(others, to[d]);
    }
  }
  const ir::SymInt total = num_elements(from);
  const auto refuse = [&] {
    builder.invalid("an operand of shape " + to_string(from) + " cannot become " + to_string(to));
  };
  if (open && same(others, 0) && same(total, 0)) {
    // Of nothing: what the extents say that are not 0.
    ir::SymInt left = 1, given = 1;
    for (const ir::SymInt& extent : from) left = same(extent, 0) ? left : builder.product(left, extent);
    for (const ir::SymInt& extent : to)
      given = same(extent, 0) || same(extent, -1) ? given : builder.product(given, extent);
    if (!ir::demand_divisible(left, given)) refuse();
    to[*open] = floordiv(left, given);
  } else if (open) {
    if (same(others, 0) || !ir::demand_divisible(total, others)) refuse();
    to[*open] = floordiv(total, others);
  } else if (!ir::demand(ir::Relation::kEqual, total, others)) {
    refuse();
  }
  return to;
}

ir::SymShape squeezed_shape(OpBuilder& builder, const ir::SymShape& from,
                            const std::optional<std::vector<int64_t>>& axes) {
  ir::SymShape to;
  for (size_t d = 0; d < from.size(); ++d) {
    const bool is_named =
        axes && std::find(axes->begin(), axes->end(), static_cast<int64_t>(d)) != axes->end();
    if (is_named && !ir::demand(ir::Relation::kEqual, from[d], 1))
      builder.invalid("axis " + std::to_string(d) + " of shape " + to_string(from) + " is not 1");
    if (!(axes ? is_named : same(from[d], 1))) to.push_back(from[d]);
  }
  return to;
}

V sliced(OpBuilder& builder, ChannelsLast& maps, V x, const Part& part) {
  const int64_t rank = builder.rank(x);
  if (!maps.is_made(x))
    return builder.add("slice", {x},
                       {{"starts", part.starts}, {"extents", part.extents}, {"steps", part.steps}});
  Part moved = part;
  for (int64_t d = 0; d < rank; ++d) {
    const auto from = static_cast<size_t>(d), at = static_cast<size_t>(ChannelsLast::axis_first(d, rank));
    moved.starts[at] = part.starts[from];
    moved.extents[at] = part.extents[from];
    moved.steps[at] = part.steps[from];
  }
  return maps.last(
      builder, builder.add("slice", {maps.first(builder, x)},
                           {{"starts", moved.starts}, {"extents", moved.extents}, {"steps", moved.steps}}));
}

V sized_slice(OpBuilder& builder, ChannelsLast& maps, V x, const ir::SymShape& begins,
              const ir::SymShape& sizes) {
  const ir::SymShape shape = builder.type(x).shape;
  if (begins.size() != shape.size() || sizes.size() != shape.size())
    builder.invalid("begin and size have " + std::to_string(begins.size()) + " and " +
                    std::to_string(sizes.size()) + " elements for rank " + std::to_string(shape.size()));
  Part part{begins, sizes, std::vector<int64_t>(shape.size(), 1)};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (same(sizes[d], -1)) part.extents[d] = shape[d] - begins[d];
    const bool fits = ir::demand(ir::Relation::kLessEqual, 0, begins[d]) &&
                      ir::demand(ir::Relation::kLessEqual, 0, part.extents[d]) &&
                      ir::demand(ir::Relation::kLessEqual, begins[d] + part.extents[d], shape[d]);
    if (!fits)
      builder.invalid("elements " + to_string(begins[d]) + " to " + to_string(begins[d] + part.extents[d]) +
                      " of an axis of " + to_string(shape[d]));
  }
  return sliced(builder, maps, x, part);
}

namespace {

/// One entry of a strided slice, in the order of begin, end and strides.
class StridedSlice {
public:
  StridedSlice(OpBuilder& builder, const StridedSliceSpec& spec, const ir::SymShape& shape)
      : builder_(builder), spec_(spec), shape_(shape) {
    if (spec_.end.size() != spec_.begin.size() || spec_.strides.size() != spec_.begin.size())
      builder.invalid("begin, end and strides have different lengths");
    if (spec_.begin.size() > kMaxEntries)
      builder.invalid("more than " + std::to_string(kMaxEntries) + " entries");
  }

  void run() {
    size_t axis = 0;
    for (size_t entry = 0; entry < spec_.begin.size(); ++entry) {
      if (has(spec_.ellipsis_mask, entry)) {
        // As many axes as the other entries leave.
        size_t others = 0;
        for (size_t i = entry + 1; i < spec_.begin.size(); ++i) others += has(spec_.new_axis_mask, i) ? 0 : 1;
        while (axis + others < shape_.size()) keep(axis++);
      } else if (has(spec_.new_axis_mask, entry)) {
        result.push_back(1);
      } else {
        if (axis == shape_.size()) builder_.invalid("more entries than axes");
        take(entry, axis++);
      }
    }
    while (axis < shape_.size()) keep(axis++);
  }

  Part part;
  ir::SymShape result;  ///< with new axes, and without those of one index

private:
  static constexpr size_t kMaxEntries = 31;
  static bool has(int64_t mask, size_t entry) { return ((mask >> entry) & 1) != 0; }

  void keep(size_t axis) {
    part.starts.push_back(0);
    part.extents.push_back(shape_[axis]);
    part.steps.push_back(1);
    result.push_back(shape_[axis]);
  }

  void take(size_t entry, size_t axis) {
    const ir::SymInt& extent = shape_[axis];
    if (has(spec_.shrink_axis_mask, entry)) {
      const ir::SymInt at = spec_.begin[entry] < 0 ? spec_.begin[entry] + extent : spec_.begin[entry];
      if (!ir::demand(ir::Relation::kLessEqual, 0, at) || !ir::demand(ir::Relation::kLess, at, extent))
        builder_.invalid("index " + to_string(spec_.begin[entry]) + " of an axis of " + to_string(extent));
      part.starts.push_back(at);
      part.extents.push_back(1);
      part.steps.push_back(1);
      return;
    }
    const int64_t step = spec_.strides[entry];
    if (step == 0) builder_.invalid("a stride is 0");
    const bool is_down = step < 0;
    const ir::SymInt low = is_down ? -1 : 0, high = is_down ? extent - 1 : extent;
    const ir::SymInt end_given = spec_.offset ? spec_.begin[entry] + spec_.end[entry] : spec_.end[entry];
    const ir::SymInt start = has(spec_.begin_mask, entry)
                                 ? (is_down ? high : low)
                                 : place_within(spec_.begin[entry], extent, low, high);
    const ir::SymInt stop =
        has(spec_.end_mask, entry) ? (is_down ? low : high) : place_within(end_given, extent, low, high);
    const ir::SymInt span = is_down ? start - stop : stop - start;
    const ir::SymInt count = max(floordiv(span - 1, is_down ? -step : step) + 1, 0);
    part.starts.push_back(max(start, 0));
    part.extents.push_back(count);
    part.steps.push_back(step);
    if (same(count, 0)) {
      part.starts.back() = 0;
      part.steps.back() = 1;
    }
    result.push_back(count);
  }

  OpBuilder& builder_;
  const StridedSliceSpec& spec_;
  const ir::SymShape shape_;
};

}  // namespace

V strided_slice(OpBuilder& builder, ChannelsLast& maps, V x, const StridedSliceSpec& spec) {
  StridedSlice slice(builder, spec, builder.type(x).shape);
  slice.run();
  return Compose(builder).reshape(sliced(builder, maps, x, slice.part), slice.result);
}

V reversed(OpBuilder& builder, ChannelsLast& maps, V x, const std::vector<int64_t>& axes) {
  const ir::SymShape shape = builder.type(x).shape;
  Part part{ir::SymShape(shape.size(), 0), shape, std::vector<int64_t>(shape.size(), 1)};
  for (const int64_t given : axes) {
    const auto axis = static_cast<size_t>(builder.normalize_axis(given, builder.rank(x)));
    if (shape[axis] == 0) continue;
    part.starts[axis] = shape[axis] - 1;
    part.steps[axis] = -1;
  }
  return sliced(builder, maps, x, part);
}

namespace {

/// Begins, then ends, of all axes.
ir::SymShape pads_of(OpBuilder& builder, const ir::SymShape& given, int64_t rank, bool is_map) {
  if (given.size() != 2 * static_cast<size_t>(rank))
    builder.invalid("paddings have " + std::to_string(given.size()) + " elements for rank " +
                    std::to_string(rank));
  ir::SymShape pads(given.size(), 0);
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t at = is_map ? ChannelsLast::axis_first(d, rank) : d;
    pads[static_cast<size_t>(at)] = given[static_cast<size_t>(2 * d)];
    pads[static_cast<size_t>(at + rank)] = given[static_cast<size_t>(2 * d + 1)];
  }
  return pads;
}

}  // namespace

V padded(OpBuilder& builder, ChannelsLast& maps, V x, const ir::SymShape& paddings, double value) {
  const bool is_map = maps.is_made(x);
  const ir::Attrs attrs{{"pads", pads_of(builder, paddings, builder.rank(x), is_map)},
                        {"mode", std::string("constant")},
                        {"value", value}};
  return is_map ? maps.last(builder, builder.add("pad", {maps.first(builder, x)}, attrs))
                : builder.add("pad", {x}, attrs);
}

V mirror_padded(OpBuilder& builder, V x, const ir::SymShape& paddings, bool is_symmetric) {
  Compose c(builder);
  const int64_t rank = builder.rank(x);
  const ir::SymShape pads = pads_of(builder, paddings, rank, false);
  if (!is_symmetric) return builder.add("pad", {x}, {{"pads", pads}, {"mode", std::string("reflect")}});
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t before = pads[static_cast<size_t>(d)], behind = pads[static_cast<size_t>(d + rank)];
    if (before == 0 && behind == 0) continue;
    const int64_t extent = builder.type(x).shape[static_cast<size_t>(d)];
    if (before < 0 || behind < 0 || std::max(before, behind) > extent)
      builder.invalid("pads of " + std::to_string(before) + " and " + std::to_string(behind) +
                      " for an axis of " + std::to_string(extent));
    if (extent > kMaxListed) builder.unsupported("mode", "axes of " + std::to_string(extent) + " elements");
    std::vector<int64_t> places;
    for (int64_t i = 0; i < extent + before + behind; ++i) {
      const int64_t at = i - before;
      places.push_back(at < 0 ? -at - 1 : at < extent ? at : 2 * extent - at - 1);
    }
    x = c.gather(x, c.ints(places, {static_cast<int64_t>(places.size())}), d);
  }
  return x;
}

std::vector<V> split(OpBuilder& builder, ChannelsLast& maps, V x, int64_t axis, const ir::SymShape& sizes) {
  const int64_t rank = builder.rank(x);
  const bool is_map = maps.is_made(x);
  axis = builder.normalize_axis(axis, rank);
  const int64_t at = is_map ? ChannelsLast::axis_first(axis, rank) : axis;
  std::vector<V> parts =
      builder.add_many("split", {is_map ? maps.first(builder, x) : x}, {{"axis", at}, {"sizes", sizes}});
  if (is_map)
    for (V& part : parts) part = maps.last(builder, part);
  return parts;
}

V concatenated(OpBuilder& builder, ChannelsLast& maps, std::vector<V> parts, int64_t axis) {
  if (parts.empty()) builder.invalid("it has no operands");
  Compose c(builder);
  const int64_t rank = builder.rank(parts[0]);
  axis = builder.normalize_axis(axis, rank);
  const bool is_map =
      rank > 2 && std::any_of(parts.begin(), parts.end(), [&](V part) { return maps.is_made(part); });
  if (!is_map) return c.concat(std::move(parts), axis);
  for (V& part : parts) part = maps.first(builder, part);
  return maps.last(builder, c.concat(std::move(parts), ChannelsLast::axis_first(axis, rank)));
}

V reduced(OpBuilder& builder, ChannelsLast& maps, const char* op, V x, const std::vector<int64_t>& axes,
          bool keeps) {
  Compose c(builder);
  if (!maps.is_made(x)) return c.reduce(op, x, axes, keeps);
  const int64_t rank = builder.rank(x);
  std::vector<int64_t> moved;
  for (const int64_t axis : axes) moved.push_back(ChannelsLast::axis_first(axis, rank));
  std::sort(moved.begin(), moved.end());
  const bool has_channels = std::find(moved.begin(), moved.end(), 1) == moved.end();
  const bool has_spatial =
      std::count_if(moved.begin(), moved.end(), [](int64_t axis) { return axis > 1; }) < rank - 2;
  if (keeps) return maps.last(builder, c.reduce(op, maps.first(builder, x), moved, true));
  // What is left stands in the same order if the channels are not in front of anything.
  return has_channels && has_spatial ? c.reduce(op, x, axes, false)
                                     : c.reduce(op, maps.first(builder, x), moved, false);
}

V along_channels(OpBuilder& builder, ChannelsLast& maps, const char* op, V x) {
  if (maps.is_made(x))
    return maps.last(builder, builder.add(op, {maps.first(builder, x)}, {{"axis", int64_t{1}}}));
  return builder.add(op, {x}, {{"axis", builder.rank(x) - 1}});
}

}  // namespace tensormill::build
