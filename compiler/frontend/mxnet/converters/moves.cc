// What moves elements, or sees them in another shape.
#include "compiler/build/moves/moves.h"

#include <algorithm>

#include "compiler/build/maps/space.h"
#include "compiler/build/moves/slices.h"
#include "compiler/frontend/mxnet/converters/shapes.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

V sliced(NodeContext& node, V x, int64_t axis, const build::AxisSlice& part) {
  build::ChannelsLast none;
  if (part.step > 0) return Compose(node).slice(x, axis, part.start, part.extent, part.step);
  build::Part all{ir::SymShape(node.shape(x).size(), 0), node.shape(x),
                  std::vector<int64_t>(node.shape(x).size(), 1)};
  all.starts[static_cast<size_t>(axis)] = part.start;
  all.extents[static_cast<size_t>(axis)] = part.extent;
  all.steps[static_cast<size_t>(axis)] = part.step;
  return build::sliced(node, none, x, all);
}

/// What numpy's begin:end:step takes of an axis.
build::AxisSlice part_of(const std::optional<int64_t>& begin, const std::optional<int64_t>& end, int64_t step,
                         const ir::SymInt& extent) {
  const auto place = [](const std::optional<int64_t>& given, int64_t otherwise) {
    return ir::SymInt(given ? std::clamp(*given, -build::kMostPlace, build::kMostPlace) : otherwise);
  };
  return build::slice_within(place(begin, step > 0 ? 0 : build::kMostPlace),
                             place(end, step > 0 ? build::kMostPlace : -build::kMostPlace), step, extent);
}

/// Parts along an axis, which goes where `squeezes` is set.
void set_parts(NodeContext& node, V x, int64_t axis, const ir::SymShape& sizes, bool squeezes) {
  build::ChannelsLast none;
  std::vector<V> parts = build::split(node, none, x, axis, sizes);
  for (V& part : parts) {
    if (!squeezes) break;
    if (!ir::demand(ir::Relation::kEqual, node.shape(part)[static_cast<size_t>(axis)], 1))
      node.invalid("squeeze_axis of parts of shape " + to_string(node.shape(part)));
    part = Compose(node).squeeze(part, axis);
  }
  node.set_outputs(parts);
}

constexpr int64_t kMostSections = int64_t{1} << 16;

ir::SymShape equal_sizes(NodeContext& node, const ir::SymInt& extent, int64_t count) {
  if (count < 1 || count > kMostSections || !ir::demand_divisible(extent, count))
    node.invalid("an axis of " + to_string(extent) + " does not divide by " + std::to_string(count));
  return ir::SymShape(static_cast<size_t>(count), floordiv(extent, count));
}

}  // namespace

void convert_flatten(NodeContext& node) {
  const V x = node.input(0);
  const ir::SymShape shape = node.shape(x);
  if (shape.empty()) node.invalid("the input has no dims");
  node.set_output(
      Compose(node).reshape(x, {shape[0], num_elements(ir::SymShape(shape.begin() + 1, shape.end()))}));
}

void convert_reshape(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(Compose(node).reshape(x, reshaped_to(node, node.shape(x))));
}

// Axes [lhs_begin, lhs_end) become those [rhs_begin, rhs_end) of the other operand.
void convert_reshape_like(NodeContext& node) {
  const V x = node.input(0);
  const ir::SymShape from = node.shape(x), like = node.shape(node.input(1));
  const auto place = [&](const char* name, size_t rank, size_t otherwise) {
    if (!node.has(name)) return static_cast<std::ptrdiff_t>(otherwise);
    const int64_t at = node.integer(name);
    return static_cast<std::ptrdiff_t>(
        std::clamp<int64_t>(at < 0 ? at + static_cast<int64_t>(rank) : at, 0, static_cast<int64_t>(rank)));
  };
  const auto begin = place("lhs_begin", from.size(), 0), end = place("lhs_end", from.size(), from.size()),
             first = place("rhs_begin", like.size(), 0), last = place("rhs_end", like.size(), like.size());
  if (begin > end || first > last) node.invalid("its axes end before they begin");
  ir::SymShape to(from.begin(), from.begin() + begin);
  to.insert(to.end(), like.begin() + first, like.begin() + last);
  to.insert(to.end(), from.begin() + end, from.end());
  node.set_output(Compose(node).reshape(x, build::settled_shape(node, from, to)));
}

void convert_transpose(NodeContext& node) {
  const V x = node.input(0);
  ir::Ints perm = node.ints("axes", std::vector<int64_t>());
  for (int64_t axis = node.rank(x); perm.size() < node.shape(x).size() && axis-- > 0;) perm.push_back(axis);
  for (int64_t& axis : perm) axis = node.normalize_axis(axis, node.rank(x));
  node.set_output(Compose(node).transpose(x, perm));
}

void convert_swap_axis(NodeContext& node) {
  const V x = node.input(0);
  std::vector<int64_t> perm;
  for (int64_t axis = 0; axis < node.rank(x); ++axis) perm.push_back(axis);
  std::swap(perm[static_cast<size_t>(node.axis("dim1", node.rank(x), 0))],
            perm[static_cast<size_t>(node.axis("dim2", node.rank(x), 0))]);
  node.set_output(Compose(node).transpose(x, perm));
}

void convert_expand_dims(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(Compose(node).unsqueeze(x, node.axis("axis", node.rank(x) + 1)));
}

void convert_squeeze(NodeContext& node) {
  const V x = node.input(0);
  std::optional<std::vector<int64_t>> axes;
  if (node.has("axis")) axes = node.axes("axis", node.rank(x));
  ir::SymShape to = build::squeezed_shape(node, node.shape(x), axes);
  // An array has an axis at least.
  if (to.empty()) to.push_back(1);
  node.set_output(Compose(node).reshape(x, to));
}

void convert_slice(NodeContext& node) {
  V x = node.input(0);
  const std::vector<std::optional<int64_t>> begin = node.maybe_ints("begin"), end = node.maybe_ints("end");
  const std::vector<std::optional<int64_t>> steps =
      node.has("step") ? node.maybe_ints("step") : std::vector<std::optional<int64_t>>();
  if (begin.size() != end.size() || begin.size() > node.shape(x).size())
    node.invalid("begin and end have " + std::to_string(begin.size()) + " and " + std::to_string(end.size()) +
                 " entries for rank " + std::to_string(node.rank(x)));
  for (size_t d = 0; d < begin.size(); ++d) {
    const int64_t step = d < steps.size() ? steps[d].value_or(1) : 1;
    if (step == 0 || step < -build::kMostPlace || step > build::kMostPlace)
      node.invalid("a step of " + std::to_string(step));
    x = sliced(node, x, static_cast<int64_t>(d), part_of(begin[d], end[d], step, node.shape(x)[d]));
  }
  node.set_output(x);
}

void convert_slice_axis(NodeContext& node) {
  const V x = node.input(0);
  const int64_t axis = node.axis("axis", node.rank(x));
  std::optional<int64_t> end;
  if (node.has("end")) end = node.integer("end");
  node.set_output(sliced(node, x, axis,
                         part_of(node.integer("begin"), end, 1, node.shape(x)[static_cast<size_t>(axis)])));
}

void convert_slice_like(NodeContext& node) {
  V x = node.input(0);
  const ir::SymShape like = node.shape(node.input(1));
  for (const int64_t axis : node.axes("axes", node.rank(x))) {
    const auto d = static_cast<size_t>(axis);
    if (d >= like.size() || !ir::demand(ir::Relation::kLessEqual, like[d], node.shape(x)[d]))
      node.invalid("an input of shape " + to_string(node.shape(x)) + " is cut to " + to_string(like));
    x = Compose(node).slice(x, axis, 0, like[d]);
  }
  node.set_output(x);
}

void convert_slice_channel(NodeContext& node) {
  const V x = node.input(0);
  const int64_t axis = node.axis("axis", node.rank(x), 1);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  set_parts(node, x, axis, equal_sizes(node, extent, node.integer("num_outputs")),
            node.flag("squeeze_axis", false));
}

// Of as many sections, or from each of the indices on.
void convert_split_v2(NodeContext& node) {
  const V x = node.input(0);
  const int64_t axis = node.axis("axis", node.rank(x), 1), sections = node.integer("sections", 0);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  ir::Ints begins = node.ints("indices", std::vector<int64_t>());
  const bool squeezes = node.flag("squeeze_axis", false);
  if (sections > 0) return set_parts(node, x, axis, equal_sizes(node, extent, sections), squeezes);
  ir::SymShape sizes;
  for (size_t i = 0; i < begins.size(); ++i) {
    const ir::SymInt end = i + 1 < begins.size() ? ir::SymInt(begins[i + 1]) : extent;
    if (begins[0] != 0 || !ir::demand(ir::Relation::kLessEqual, begins[i], end))
      node.invalid("indices that are none of an axis of " + to_string(extent));
    sizes.push_back(end - begins[i]);
  }
  if (sizes.empty() || static_cast<int64_t>(sizes.size()) > kMostSections)
    node.invalid("it has " + std::to_string(sizes.size()) + " indices");
  set_parts(node, x, axis, sizes, squeezes);
}

void convert_concat(NodeContext& node) {
  ir::CheckedList<V> parts = node.inputs();
  const int64_t axis = node.axis("dim", node.rank(parts[0]), 1);
  node.set_output(Compose(node).concat(std::move(parts), axis));
}

void convert_stack(NodeContext& node) {
  Compose c(node);
  ir::CheckedList<V> parts = node.inputs();
  const int64_t axis = node.axis("axis", node.rank(parts[0]) + 1, 0);
  for (V& part : parts) part = c.unsqueeze(part, axis);
  node.set_output(c.concat(std::move(parts), axis));
}

// Axes of 1 stand before what has fewer.
void convert_tile(NodeContext& node) {
  Compose c(node);
  V x = node.input(0);
  ir::Ints repeats = node.ints("reps");
  ir::SymShape shape = node.shape(x);
  while (repeats.size() < shape.size()) repeats.insert(repeats.begin(), 1);
  while (shape.size() < repeats.size()) shape.insert(shape.begin(), 1);
  for (const int64_t each : repeats)
    if (each < 0) node.invalid("reps has the number " + std::to_string(each));
  node.set_output(node.add("tile", {c.reshape(x, shape)}, {{"repeats", repeats}, {"each", int64_t{0}}}));
}

void convert_repeat(NodeContext& node) {
  Compose c(node);
  V x = node.input(0);
  const int64_t count = node.integer("repeats");
  if (count < 0) node.invalid("repeats is " + std::to_string(count));
  if (!node.has("axis")) x = c.reshape(x, {num_elements(node.shape(x))});
  std::vector<int64_t> repeats(node.shape(x).size(), 1);
  repeats[static_cast<size_t>(node.axis("axis", node.rank(x), 0))] = count;
  node.set_output(c.tile_each(x, repeats));
}

void convert_reverse(NodeContext& node) {
  const V x = node.input(0);
  build::ChannelsLast none;
  node.set_output(build::reversed(node, none, x, node.axes("axis", node.rank(x))));
}

namespace {

/// The block size of maps whose extents of space have to divide by it.
int64_t block_of(NodeContext& node, V x) {
  const int64_t block = node.integer("block_size");
  constexpr int64_t kMostBlock = int64_t{1} << 15;
  if (node.rank(x) != 4 || block < 1 || block > kMostBlock)
    node.invalid("blocks of " + std::to_string(block) + " of an input of shape " + to_string(node.shape(x)));
  return block;
}

}  // namespace

void convert_depth_to_space(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const int64_t b = block_of(node, x);
  const ir::SymShape s = node.shape(x);
  if (!ir::demand_divisible(s[1], b * b))
    node.invalid("an input of shape " + to_string(s) + " has no blocks of " + std::to_string(b));
  const ir::SymInt channels = floordiv(s[1], b * b);
  const V parts = c.transpose(c.reshape(x, {s[0], b, b, channels, s[2], s[3]}), {0, 3, 4, 1, 5, 2});
  node.set_output(c.reshape(parts, {s[0], channels, s[2] * b, s[3] * b}));
}

void convert_space_to_depth(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const int64_t b = block_of(node, x);
  const ir::SymShape s = node.shape(x);
  if (!ir::demand_divisible(s[2], b) || !ir::demand_divisible(s[3], b))
    node.invalid("an input of shape " + to_string(s) + " has no blocks of " + std::to_string(b));
  const ir::SymInt rows = floordiv(s[2], b), columns = floordiv(s[3], b);
  const V parts = c.transpose(c.reshape(x, {s[0], s[1], rows, b, columns, b}), {0, 3, 5, 1, 2, 4});
  node.set_output(c.reshape(parts, {s[0], s[1] * (b * b), rows, columns}));
}

// Of the extents of a second operand, or of h_w, from an offset on or in the middle.
void convert_crop(NodeContext& node) {
  Compose c(node);
  V x = node.input(0);
  if (node.rank(x) != 4) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  const ir::Ints offset = node.ints("offset", std::vector<int64_t>{0, 0}),
                 size = node.ints("h_w", std::vector<int64_t>{0, 0});
  if (offset.size() != 2 || size.size() != 2) node.invalid("offset and h_w have no two numbers");
  if (node.has_input(1) && node.rank(node.input(1)) != 4)
    node.invalid("the second input has rank " + std::to_string(node.rank(node.input(1))));
  const bool is_center = node.flag("center_crop", false);
  for (const size_t d : {size_t{2}, size_t{3}}) {
    const ir::SymInt own = node.shape(x)[d];
    const ir::SymInt to = node.has_input(1) ? node.shape(node.input(1))[d] : ir::SymInt(size[d - 2]);
    const ir::SymInt begin = is_center ? floordiv(own - to, 2) : ir::SymInt(offset[d - 2]);
    if (!ir::demand(ir::Relation::kLessEqual, 0, begin) ||
        !ir::demand(ir::Relation::kLessEqual, begin + to, own))
      node.invalid("a part of " + to_string(to) + " elements of an axis of " + to_string(own));
    x = c.slice(x, static_cast<int64_t>(d), begin, to);
  }
  node.set_output(x);
}

// A begin and an end each axis.
void convert_pad(NodeContext& node) {
  const V x = node.input(0);
  const ir::Ints width = node.ints("pad_width");
  const size_t rank = node.shape(x).size();
  if (width.size() != 2 * rank)
    node.invalid("pad_width has " + std::to_string(width.size()) + " numbers for rank " +
                 std::to_string(rank));
  ir::SymShape pads(2 * rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    if (width[2 * d] < 0 || width[2 * d + 1] < 0) node.invalid("pad_width has a negative number");
    pads[d] = width[2 * d];
    pads[d + rank] = width[2 * d + 1];
  }
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect")
    node.invalid("mode is \"" + mode.substr(0, 40) + "\"");
  node.set_output(
      node.add("pad", {x}, {{"pads", pads}, {"mode", mode}, {"value", node.real("constant_value", 0)}}));
}

// 0 leaves an axis.
void convert_broadcast_to(NodeContext& node) {
  const V x = node.input(0);
  const ir::Ints given = node.ints("shape");
  ir::SymShape to = node.shape(x);
  if (given.size() != to.size()) node.invalid("shape has " + std::to_string(given.size()) + " numbers");
  for (size_t d = 0; d < to.size(); ++d)
    if (given[d] != 0) to[d] = given[d];
  node.set_output(Compose(node).expand(x, to));
}

void convert_broadcast_axis(NodeContext& node) {
  const V x = node.input(0);
  const ir::Ints axes = node.ints("axis"), sizes = node.ints("size");
  ir::SymShape to = node.shape(x);
  if (axes.size() != sizes.size()) node.invalid("axis and size are of different numbers");
  for (size_t i = 0; i < axes.size(); ++i)
    to[static_cast<size_t>(node.normalize_axis(axes[i], node.rank(x)))] = sizes[i];
  node.set_output(Compose(node).expand(x, to));
}

void convert_broadcast_like(NodeContext& node) {
  const V x = node.input(0);
  const ir::SymShape like = node.shape(node.input(1));
  ir::SymShape to = node.shape(x);
  const ir::Ints own = node.ints("lhs_axes", std::vector<int64_t>()),
                 others = node.ints("rhs_axes", std::vector<int64_t>());
  if (own.size() != others.size()) node.invalid("lhs_axes and rhs_axes are of different numbers");
  if (own.empty()) to = like;
  for (size_t i = 0; i < own.size(); ++i)
    to[static_cast<size_t>(node.normalize_axis(own[i], node.rank(x)))] =
        like[static_cast<size_t>(node.normalize_axis(others[i], static_cast<int64_t>(like.size())))];
  node.set_output(Compose(node).expand(x, to));
}

}  // namespace tensormill::frontend::mxnet
