// What moves elements, or sees them in another shape.
#include "compiler/build/moves/moves.h"

#include <algorithm>

#include "compiler/build/moves/slices.h"
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

void convert_reshape(NodeContext& node) {
  const V x = node.tensor("x");
  ir::SymShape to = node.numbers("shape", 0);
  const ir::SymShape from = node.shape(x);
  for (size_t d = 0; d < to.size() && to.size() == from.size(); ++d)
    if (same(to[d], 0)) to[d] = from[d];
  node.set_output(Compose(node).reshape(x, build::settled_shape(node, from, to)));
}

void convert_reshape_like(NodeContext& node) {
  const V x = node.tensor("x");
  const ir::CheckedList<V> references = node.tensors("ref_tensors");
  const ir::Ints begins = node.ints("begins"), ends = node.ints("ends");
  const ir::CheckedList<bool> masks = node.flags("end_masks");
  if (begins.size() != references.size() || ends.size() != references.size() ||
      masks.size() != references.size())
    node.invalid("ref_tensors, begins, ends and end_masks are of different numbers");
  ir::SymShape to;
  for (size_t i = 0; i < references.size(); ++i) {
    const ir::SymShape from = node.shape(references[i]);
    const auto rank = static_cast<int64_t>(from.size());
    const auto place = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
    const int64_t begin = place(begins[i]), end = masks[i] ? rank : place(ends[i]);
    for (int64_t d = begin; d < end; ++d) to.push_back(from[static_cast<size_t>(d)]);
  }
  node.set_output(Compose(node).reshape(x, build::settled_shape(node, node.shape(x), to)));
}

void convert_expand_dims(NodeContext& node) {
  const V x = node.tensor("x");
  const ir::Ints given = node.ints("axes");
  ir::SymShape to = node.shape(x);
  for (const int64_t axis : node.axes("axes", node.rank(x) + static_cast<int64_t>(given.size())))
    to.insert(to.begin() + axis, 1);
  if (to.size() != node.shape(x).size() + given.size()) node.invalid("an axis stands twice");
  node.set_output(Compose(node).reshape(x, to));
}

void convert_squeeze(NodeContext& node) {
  const V x = node.tensor("x");
  std::optional<std::vector<int64_t>> axes;
  if (node.has("axes")) axes = node.axes("axes", node.rank(x));
  node.set_output(Compose(node).reshape(x, build::squeezed_shape(node, node.shape(x), axes)));
}

void convert_flatten2d(NodeContext& node) {
  const V x = node.tensor("x");
  const ir::SymShape from = node.shape(x);
  const int64_t given = node.integer("axis", 1), rank = node.rank(x);
  const int64_t axis = std::clamp<int64_t>(given < 0 ? given + rank : given, 0, rank);
  node.set_output(Compose(node).reshape(x, {num_elements(ir::SymShape(from.begin(), from.begin() + axis)),
                                            num_elements(ir::SymShape(from.begin() + axis, from.end()))}));
}

void convert_transpose(NodeContext& node) {
  const V x = node.tensor("x");
  ir::Ints perm = node.ints("perm");
  for (int64_t& axis : perm) axis = node.normalize_axis(axis, node.rank(x));
  node.set_output(Compose(node).transpose(x, perm));
}

// Numbers are joined to a row.
void convert_concat(NodeContext& node) {
  Compose c(node);
  ir::CheckedList<V> parts = node.tensors("values");
  for (V& part : parts)
    if (node.rank(part) == 0) part = c.unsqueeze(part, 0);
  const int64_t axis = node.axis("axis", node.rank(parts[0]));
  if (!node.flag("interleave", false)) return node.set_output(c.concat(parts, axis));
  ir::SymShape to = node.shape(parts[0]);
  to[static_cast<size_t>(axis)] *= static_cast<int64_t>(parts.size());
  for (V& part : parts) part = c.unsqueeze(part, axis + 1);
  node.set_output(c.reshape(c.concat(parts, axis + 1), to));
}

void convert_stack(NodeContext& node) {
  Compose c(node);
  ir::CheckedList<V> parts = node.tensors("values");
  const int64_t axis = node.axis("axis", node.rank(parts[0]) + 1);
  for (V& part : parts) part = c.unsqueeze(part, axis);
  node.set_output(c.concat(parts, axis));
}

void convert_split(NodeContext& node) {
  const V x = node.tensor("x");
  const int64_t axis = node.axis("axis", node.rank(x));
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const auto count = static_cast<int64_t>(node.num_outputs());
  if (node.has("num_splits") && node.integer("num_splits") != count)
    node.invalid("num_splits is " + std::to_string(node.integer("num_splits")) + ", there are " +
                 std::to_string(count) + " outputs");
  ir::SymShape sizes;
  if (node.has("split_sizes")) {
    sizes = node.numbers("split_sizes", 0);
  } else {
    if (count == 0 || !ir::demand_divisible(extent, count))
      node.invalid("an axis of " + to_string(extent) + " does not divide by " + std::to_string(count));
    sizes = ir::SymShape(static_cast<size_t>(count), floordiv(extent, count));
  }
  build::ChannelsLast none;
  node.set_outputs(build::split(node, none, x, axis, sizes));
}

namespace {

/// Masks as bits; nothing set where one is not given.
int64_t mask_of_axes(NodeContext& node, const char* name, size_t rank) {
  if (!node.has(name)) return 0;
  const ir::CheckedList<bool> flags = node.flags(name);
  if (flags.size() > rank)
    node.invalid(std::string(name) + " has " + std::to_string(flags.size()) + " elements");
  int64_t mask = 0;
  for (size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) mask |= int64_t{1} << i;
  return mask;
}

/// The slice that begin, end, stride and the masks say of x.
build::StridedSliceSpec slice_of(NodeContext& node, V x) {
  const size_t rank = node.shape(x).size();
  constexpr size_t kMostAxes = 31;
  if (rank > kMostAxes) node.invalid("the input has rank " + std::to_string(rank));
  build::StridedSliceSpec spec;
  spec.begin = node.numbers("begin");
  spec.end = node.numbers("end");
  spec.strides = node.has("stride") ? ir::SymShape(node.ints("stride")) : ir::SymShape(rank, 1);
  if (spec.begin.size() != rank || spec.end.size() != rank || spec.strides.size() != rank)
    node.invalid("begin, end and stride have " + std::to_string(spec.begin.size()) + ", " +
                 std::to_string(spec.end.size()) + " and " + std::to_string(spec.strides.size()) +
                 " elements for rank " + std::to_string(rank));
  spec.begin_mask = mask_of_axes(node, "begin_mask", rank);
  spec.end_mask = mask_of_axes(node, "end_mask", rank);
  spec.shrink_axis_mask = mask_of_axes(node, "squeeze_mask", rank);
  return spec;
}

bool has_bit(int64_t mask, size_t axis) { return ((mask >> axis) & 1) != 0; }

/// Which elements of an axis a slice names.
build::AxisSlice axis_slice(NodeContext& node, const build::StridedSliceSpec& spec, const ir::SymInt& extent,
                            size_t axis) {
  const int64_t step = spec.strides[axis];
  if (step == 0) node.invalid("a stride is 0");
  if (has_bit(spec.shrink_axis_mask, axis)) {
    const ir::SymInt at = spec.begin[axis] < 0 ? spec.begin[axis] + extent : spec.begin[axis];
    return {at, 1, 1};
  }
  const ir::SymInt begin = !has_bit(spec.begin_mask, axis) ? spec.begin[axis]
                           : step > 0                      ? ir::SymInt(0)
                                                           : ir::SymInt(build::kMostPlace);
  const ir::SymInt end = !has_bit(spec.end_mask, axis)
                             ? spec.end[axis]
                             : ir::SymInt(step > 0 ? build::kMostPlace : -build::kMostPlace);
  return build::slice_within(begin, end, step, extent);
}

}  // namespace

void convert_slice_by_index(NodeContext& node) {
  const V x = node.tensor("x");
  build::ChannelsLast none;
  node.set_output(build::strided_slice(node, none, x, slice_of(node, x)));
}

void convert_slice_by_size(NodeContext& node) {
  const V x = node.tensor("x");
  build::ChannelsLast none;
  node.set_output(build::sized_slice(node, none, x, node.numbers("begin", 0), node.numbers("size", 0)));
}

// Each place of x takes the element of `update` that belongs there, where the slice names it.
void convert_slice_update(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  V update = node.tensor("update");
  const build::StridedSliceSpec spec = slice_of(node, x);
  const ir::SymShape shape = node.shape(x);
  std::vector<build::AxisSlice> slices;
  ir::SymShape counts;
  for (size_t d = 0; d < shape.size(); ++d) {
    slices.push_back(axis_slice(node, spec, shape[d], d));
    counts.push_back(slices.back().extent);
    if (same(slices.back().extent, 0)) return node.set_alias("x");
  }
  update = c.reshape(update, build::settled_shape(node, node.shape(update), counts));
  V is_inside = ir::kAbsent;
  for (size_t d = 0; d < shape.size(); ++d) {
    const build::AxisSlice& slice = slices[d];
    const bool is_whole = slice.step == 1 && same(slice.extent, shape[d]) && same(slice.start, 0);
    if (is_whole) continue;
    // Steps behind the slice's first element.
    const V places = c.iota(shape[d], {shape[d]});
    const V behind = slice.step > 0 ? c.sub(places, c.extent(places, slice.start))
                                    : c.sub(c.extent(places, slice.start), places);
    const int64_t step = slice.step > 0 ? slice.step : -slice.step;
    const V steps = step == 1 ? behind : c.div(behind, c.number(behind, static_cast<double>(step)));
    V fits = c.binary("and", c.binary("greater_equal", behind, c.number(behind, 0)),
                      c.binary("less", steps, c.extent(steps, slice.extent)));
    if (step != 1)
      fits = c.binary("and", fits, c.binary("equal", c.times(steps, static_cast<double>(step)), behind));
    const V last = c.extent(steps, slice.extent - 1);
    const V clamped = c.binary("min", c.binary("max", steps, c.number(steps, 0)), last);
    update = c.gather(update, clamped, static_cast<int64_t>(d));
    ir::SymShape along(shape.size(), 1);
    along[d] = shape[d];
    fits = c.reshape(fits, along);
    is_inside = is_inside == ir::kAbsent ? fits : c.binary("and", is_inside, fits);
  }
  node.set_output(is_inside == ir::kAbsent ? update : c.where(is_inside, update, x));
}

void convert_crop(NodeContext& node) {
  Compose c(node);
  V y = node.tensor("x");
  const int64_t rank = node.rank(y);
  if (rank < 2) node.invalid("the input has rank " + std::to_string(rank));
  for (const bool is_height : {true, false}) {
    const ir::Ints cut = node.ints(is_height ? "crop_height" : "crop_width");
    const int64_t axis = rank - (is_height ? 2 : 1);
    const ir::SymInt extent = node.shape(y)[static_cast<size_t>(axis)];
    if (cut.size() != 2 || cut[0] < 0 || cut[1] < 0 ||
        !ir::demand(ir::Relation::kLessEqual, cut[0] + cut[1], extent))
      node.invalid("a crop that is none of an axis of " + to_string(extent));
    y = c.slice(y, axis, cut[0], extent - cut[0] - cut[1]);
  }
  node.set_output(y);
}

// A begin and an end each of the last axes.
void convert_pad(NodeContext& node) {
  const V x = node.tensor("x");
  const ir::SymShape given = node.numbers("pad", 0);
  const size_t rank = node.shape(x).size(), count = given.size() / 2;
  if (given.size() % 2 != 0 || count > rank)
    node.invalid("pad has " + std::to_string(given.size()) + " elements for rank " + std::to_string(rank));
  ir::SymShape pads(2 * rank, 0);
  for (size_t i = 0; i < count; ++i) {
    const size_t axis = rank - count + i;
    pads[axis] = given[2 * i];
    pads[axis + rank] = given[2 * i + 1];
  }
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "replicate")
    node.invalid("mode is \"" + mode + "\"");
  node.set_output(node.add("pad", {x},
                           {{"pads", pads},
                            {"mode", std::string(mode == "replicate" ? "edge" : mode)},
                            {"value", node.real("constant_val", 0)}}));
}

void convert_tile(NodeContext& node) {
  const V x = node.tensor("x");
  const ir::SymShape repeats = node.numbers("reps", 0);
  if (repeats.size() != node.shape(x).size())
    node.invalid("reps has " + std::to_string(repeats.size()) + " elements");
  node.set_output(node.add("tile", {x}, {{"repeats", repeats}, {"each", int64_t{0}}}));
}

void convert_reverse(NodeContext& node) {
  const V x = node.tensor("x");
  build::ChannelsLast none;
  node.set_output(build::reversed(node, none, x, node.axes("axes", node.rank(x))));
}

// All windows along an axis, which become one axis more.
void convert_sliding_windows(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  const int64_t axis = node.axis("axis", node.rank(x)), size = node.integer("size"),
                stride = node.integer("stride", 1);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  if (size < 1 || stride < 1 || !ir::demand(ir::Relation::kLessEqual, size, extent))
    node.invalid("windows of " + std::to_string(size) + " of an axis of " + to_string(extent));
  const ir::SymInt windows = floordiv(extent - size, stride) + 1;
  const V firsts = c.iota(windows, {windows, 1});
  const V places = c.add(c.times(firsts, static_cast<double>(stride)), c.iota(size, {1, size}));
  node.set_output(c.gather(x, places, axis));
}

void convert_shape(NodeContext& node) { node.set_cast(0, node.extents(node.shape(node.tensor("x")))); }

}  // namespace tensormill::frontend::coreml
