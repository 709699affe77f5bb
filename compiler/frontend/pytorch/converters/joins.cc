// Tensors put together, repeated, rolled, cut into blocks, padded.
#include <algorithm>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// All in one type.
std::vector<V> alike(NodeContext& node, const char* name) {
  ir::CheckedList<V> parts = node.tensors(name);
  if (parts.empty()) node.invalid("it has no operands");
  for (V& part : parts) {
    if (part == ir::kAbsent) node.invalid("an operand is missing");
    part = node.as_output(part);
  }
  return parts;
}

}  // namespace

// Tensors of shape [0] count for nothing, whatever the rank of the others.
void convert_cat(NodeContext& node) {
  Compose c(node);
  std::vector<V> parts = alike(node, "tensors");
  std::vector<V> whole;
  for (const V part : parts) {
    const ir::SymShape shape = node.shape(part);
    const bool is_nothing = shape.size() == 1 && shape[0].is_constant() && shape[0].hint() == 0;
    if (!is_nothing) whole.push_back(part);
  }
  if (whole.empty()) return node.set_output(0, node.add("identity", {parts[0]}));
  const int64_t axis = node.axis("dim", node.rank(whole[0]));
  node.set_output(0, whole.size() == 1 ? node.add("identity", {whole[0]}) : c.concat(whole, axis));
}

void convert_stack(NodeContext& node) {
  Compose c(node);
  std::vector<V> parts = alike(node, "tensors");
  const int64_t axis = node.axis("dim", node.rank(parts[0]) + 1);
  for (V& part : parts) {
    if (node.rank(part) != node.rank(parts[0]) && node.rank(part) + 1 != node.rank(parts[0]))
      node.invalid("operands of other ranks");
    part = c.unsqueeze(part, axis);
  }
  node.set_output(0, c.concat(parts, axis));
}

// Each part with as many axes as the form has, along its axis.
void convert_stack_form(NodeContext& node) {
  Compose c(node);
  std::vector<V> parts = alike(node, "tensors");
  const std::string& op = node.op();
  for (V& part : parts) {
    part = with_axis(node, part);
    if (op != "hstack" && op != "column_stack" && node.rank(part) == 1) part = c.unsqueeze(part, 0);
    if (op == "dstack" && node.rank(part) == 2) part = c.unsqueeze(part, 2);
    if (op == "column_stack" && node.rank(part) == 1) part = c.unsqueeze(part, 1);
  }
  const bool is_of_columns = op == "hstack" || op == "column_stack";
  const int64_t axis = op == "dstack" ? 2 : is_of_columns && node.rank(parts[0]) > 1 ? 1 : 0;
  node.set_output(0, c.concat(parts, axis));
}

// Axes in front where there are more numbers than axes, or ones where there are fewer.
void convert_repeat(NodeContext& node) {
  Compose c(node);
  V x = node.tensor("self");
  ir::SymShape repeats = node.syms(node.op() == "tile" ? "dims" : "repeats");
  ir::SymShape shape = node.shape(x);
  while (repeats.size() < shape.size()) repeats.insert(repeats.begin(), 1);
  while (shape.size() < repeats.size()) shape.insert(shape.begin(), 1);
  x = c.reshape(x, shape);
  node.set_output(
      0, repeats.empty() ? node.add("identity", {x}) : node.add("tile", {x}, {{"repeats", repeats}}));
}

namespace {

/// Which element stands at each place of a row in which element i stands `repeats`[i] times.
V repeated_places(NodeContext& node, V repeats) {
  Compose c(node);
  const V counts = c.cast(repeats, DType::kInt64);
  const V ends = node.add("cumsum", {counts}, {{"axis", int64_t{0}}});
  const V sum = c.reduce("reduce_sum", counts, {0}, true);
  const bool is_said = node.has("output_size");
  const ir::SymInt total = is_said ? node.sym("output_size") : node.bind_number(sum, 0, std::nullopt);
  const V is_behind = c.binary("greater_equal", c.iota(total, {total, 1}), ends);
  const V places = c.reduce("reduce_sum", c.cast(is_behind, DType::kInt64), {1}, false);
  if (!is_said) return places;
  const V said = c.dims({total}, {1});
  return build::required(node, places, c.binary("equal", sum, said),
                         "the repeats add up to {}, and output_size is {}", {sum, said});
}

}  // namespace

void convert_repeat_interleave(NodeContext& node) {
  Compose c(node);
  if (!takes(node, "self"))
    return node.set_output(0, node.as_output(repeated_places(node, node.tensor("repeats"))));
  V x = node.tensor("self");
  if (!node.has("dim")) x = c.reshape(x, {num_elements(node.shape(x))});
  const int64_t axis = node.has("dim") ? node.axis("dim", node.rank(x)) : 0;
  if (node.is_tensor("repeats")) {
    const V given = node.tensor("repeats");
    const ir::SymInt count = num_elements(node.shape(given));
    const V row = c.reshape(given, {count});
    const V repeats = same(count, 1) ? c.expand(row, {node.shape(x)[static_cast<size_t>(axis)]}) : row;
    return node.set_output(0, c.gather(x, repeated_places(node, repeats), axis));
  }
  static_cast<void>(node.has("output_size") ? node.sym("output_size") : ir::SymInt(0));
  const ir::SymInt repeats = node.sym("repeats");
  ir::SymShape wide = node.shape(x), whole = wide;
  wide.insert(wide.begin() + axis + 1, repeats);
  whole[static_cast<size_t>(axis)] = node.product(whole[static_cast<size_t>(axis)], repeats);
  node.set_output(0, c.reshape(c.expand(c.unsqueeze(x, axis + 1), wide), whole));
}

void convert_flip(NodeContext& node) {
  const V x = node.tensor("self");
  const ir::SymShape shape = node.shape(x);
  ir::SymShape starts(shape.size(), 0);
  std::vector<int64_t> steps(shape.size(), 1);
  std::vector<int64_t> axes;
  if (node.op() == "flip") {
    axes = node.axes("dims", node.rank(x));
  } else {
    axes = {node.op() == "fliplr" ? 1 : 0};
  }
  for (const int64_t axis : axes) {
    const auto at = static_cast<size_t>(axis);
    if (at >= shape.size() || (shape[at].is_constant() && shape[at].hint() == 0)) continue;
    starts[at] = shape[at] - 1;
    steps[at] = -1;
  }
  if (shape.empty()) return node.set_output(0, node.add("identity", {x}));
  node.set_output(0, node.add("slice", {x}, {{"starts", starts}, {"extents", shape}, {"steps", steps}}));
}

namespace {

/// x from element `at` of the axis on, which is within [0, its extent], and behind it what stands before.
V begun_at(NodeContext& node, V x, int64_t axis, const ir::SymInt& at) {
  Compose c(node);
  if (is_proven(ir::Relation::kEqual, at, 0)) return x;
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  return c.concat({c.slice(x, axis, at, extent - at), c.slice(x, axis, 0, at)}, axis);
}

/// Elements of an axis moved by `shift` places, those at the end to the front.
V rolled(NodeContext& node, V x, int64_t axis, const ir::SymInt& shift) {
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  if (extent.is_constant() && extent.hint() == 0) return x;
  if (same(shift, INT64_MIN)) node.invalid("a shift of " + to_string(shift));
  return begun_at(node, x, axis, floormod(-shift, max(extent, 1)));
}

}  // namespace

void convert_roll(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self");
  V x = given;
  const ir::SymShape shifts = node.syms("shifts");
  std::vector<int64_t> axes;
  for (const int64_t axis : node.ints("dims")) axes.push_back(node.normalize_axis(axis, node.rank(x)));
  if (axes.empty()) {
    x = c.reshape(x, {num_elements(node.shape(x))});
    axes = {0};
  }
  if (axes.size() != shifts.size()) node.invalid("shifts and dims have other lengths");
  for (size_t i = 0; i < axes.size(); ++i) x = rolled(node, x, axes[i], shifts[i]);
  x = c.reshape(x, node.shape(given));
  node.set_output(0, x == given ? node.add("identity", {x}) : x);
}

// What belongs to frequency 0 to the middle of each axis, or back to the front.
void convert_fftshift(NodeContext& node) {
  const V given = node.tensor("self");
  ir::Ints axes = node.axes("dim", node.rank(given));
  if (!node.has("dim")) axes = Compose(node).count_to(node.rank(given));
  V x = given;
  for (const int64_t axis : axes) {
    const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)], half = floordiv(extent, 2);
    x = begun_at(node, x, axis, node.op() == "fft_fftshift" ? extent - half : half);
  }
  node.set_output(0, x == given ? node.add("identity", {x}) : x);
}

void convert_pixel_shuffle(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const bool is_up = node.op() == "pixel_shuffle";
  const int64_t factor = node.integer(is_up ? "upscale_factor" : "downscale_factor");
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 3 || factor < 1)
    node.invalid("blocks of " + std::to_string(factor) + " in " + to_string(shape));
  const size_t rank = shape.size();
  const ir::SymInt batch = num_elements(ir::SymShape(shape.begin(), shape.end() - 3));
  const ir::SymInt &channels = shape[rank - 3], &h = shape[rank - 2], &w = shape[rank - 1];
  ir::SymShape to(shape.begin(), shape.end() - 3);
  if (is_up) {
    if (!ir::demand_divisible(channels, factor * factor)) node.invalid("channels do not divide into blocks");
    const ir::SymInt depth = floordiv(channels, factor * factor);
    const V parts = c.transpose(c.reshape(x, {batch, depth, factor, factor, h, w}), {0, 1, 4, 2, 5, 3});
    to.insert(to.end(), {depth, h * factor, w * factor});
    return node.set_output(0, c.reshape(parts, to));
  }
  if (!ir::demand_divisible(h, factor) || !ir::demand_divisible(w, factor))
    node.invalid("the map does not divide into blocks");
  const ir::SymInt rows = floordiv(h, factor), columns = floordiv(w, factor);
  const V parts =
      c.transpose(c.reshape(x, {batch, channels, rows, factor, columns, factor}), {0, 1, 3, 5, 2, 4});
  to.insert(to.end(), {channels * (factor * factor), rows, columns});
  node.set_output(0, c.reshape(parts, to));
}

void convert_channel_shuffle(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const ir::SymShape shape = node.shape(x);
  const int64_t groups = node.integer("groups");
  if (shape.size() < 3 || groups < 1 || !ir::demand_divisible(shape[1], groups))
    node.invalid(std::to_string(groups) + " groups of " + to_string(shape));
  const ir::SymInt rest = num_elements(ir::SymShape(shape.begin() + 2, shape.end()));
  const V parts = c.reshape(x, {shape[0], groups, floordiv(shape[1], groups), rest});
  node.set_output(0, c.reshape(c.transpose(parts, {0, 2, 1, 3}), shape));
}

void convert_tri(NodeContext& node) {
  V x = node.tensor("self");
  const DType dtype = node.dtype(x);
  if (dtype == DType::kBool) x = numeric(node, x);
  const V y =
      node.add("trilu", {x}, {{"upper", int64_t{node.op() == "triu"}}, {"k", node.integer("diagonal")}});
  node.set_output(0, node.as_output(y));
}

void convert_meshgrid(NodeContext& node) {
  const ir::CheckedList<V> parts = node.tensors("tensors");
  const bool is_xy = node.row().overload == "indexing" && node.text("indexing") == "xy";
  ir::SymShape whole;
  for (const V part : parts) whole.push_back(num_elements(node.shape(part)));
  const bool swaps = is_xy && parts.size() > 1;
  if (swaps) std::swap(whole[0], whole[1]);
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t axis = swaps && i < 2 ? 1 - i : i;
    ir::SymShape along(whole.size(), 1);
    along[axis] = whole[axis];
    node.set_view_in(i, "tensors", i, {reshape_step(along), expand_step(whole)});
  }
}

void convert_broadcast(NodeContext& node) {
  const ir::CheckedList<V> parts = node.tensors("tensors");
  ir::SymShape whole;
  for (const V part : parts) whole = broadcast_shapes(whole, node.shape(part));
  for (size_t i = 0; i < parts.size(); ++i) node.set_view_in(i, "tensors", i, {expand_step(whole)});
}

namespace {

/// Numbers for the last axis first, as begin and end of each; the pad's own order is begins, then ends.
ir::SymShape pads_of(NodeContext& node, V x) {
  const ir::SymShape given =
      node.syms(node.op() == "pad" || node.op() == "constant_pad_nd" ? "pad" : "padding");
  const size_t rank = node.shape(x).size();
  if (given.size() % 2 != 0 || given.size() / 2 > rank)
    node.invalid(std::to_string(given.size()) + " pads for rank " + std::to_string(rank));
  ir::SymShape pads(2 * rank, 0);
  for (size_t i = 0; 2 * i < given.size(); ++i) {
    pads[rank - 1 - i] = given[2 * i];
    pads[2 * rank - 1 - i] = given[2 * i + 1];
  }
  return pads;
}

}  // namespace

void convert_pad(NodeContext& node) {
  const V x = node.tensor("self");
  const std::string& op = node.op();
  std::string mode = "constant";
  if (op == "pad") mode = node.text("mode");
  if (op.starts_with("reflection")) mode = "reflect";
  if (op.starts_with("replication")) mode = "edge";
  if (mode == "replicate") mode = "edge";
  if (mode == "circular") mode = "wrap";
  const bool has_value = op == "pad" || op == "constant_pad_nd";
  double value = 0;
  if (has_value && node.has("value")) value = node.real("value");
  const V y = padded(node, numeric(node, x), pads_of(node, x), mode, value);
  node.set_output(0, node.as_output(y));
}

// Windows along an axis become an axis of their own, behind all.
void convert_unfold(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const ir::SymShape own = node.shape(x);
  const int64_t axis = node.axis("dimension", static_cast<int64_t>(own.size())), size = node.integer("size");
  const int64_t step = node.integer("step");
  const ir::SymInt& extent = own[static_cast<size_t>(axis)];
  if (step < 1 || size < 0 || !ir::demand(ir::Relation::kLessEqual, size, extent))
    node.invalid("windows of " + std::to_string(size) + " over " + to_string(extent));
  const ir::SymInt count = floordiv(extent - size, step) + 1;
  const V places = c.add(c.mul(c.iota(count, {count, 1}), c.ints({step}, {1, 1})), c.iota(size, {1, size}));
  const V windows = c.gather(x, places, axis);
  std::vector<int64_t> perm;
  for (int64_t i = 0; i <= static_cast<int64_t>(own.size()); ++i)
    if (i != axis + 1) perm.push_back(i);
  perm.push_back(axis + 1);
  node.set_output(0, c.transpose(windows, perm));
}

// The elements under each place of a window, [N, C * window, places].
void convert_im2col(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self");
  V x = with_batch(node, given, 2);
  const std::vector<int64_t> kernel = window_numbers(node, "kernel_size", 2, 1),
                             dilation = window_numbers(node, "dilation", 2, 1),
                             padding = window_numbers(node, "padding", 2, 0),
                             stride = window_numbers(node, "stride", 2, 1);
  x = padded(node, x, {0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]}, "constant", 0);
  for (size_t d = 0; d < 2; ++d) {
    const auto axis = static_cast<int64_t>(2 + 2 * d);
    const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
    const ir::SymInt count = floordiv(extent - (dilation[d] * (kernel[d] - 1) + 1), stride[d]) + 1;
    const V places = c.add(c.mul(c.iota(kernel[d], {kernel[d], 1}), c.ints({dilation[d]}, {1, 1})),
                           c.mul(c.iota(count, {1, count}), c.ints({stride[d]}, {1, 1})));
    x = c.gather(x, places, axis);
  }
  // [N, C, kh, H, kw, W]
  const ir::SymShape s = node.shape(x);
  const V columns = c.reshape(c.transpose(x, {0, 1, 2, 4, 3, 5}), {s[0], s[1] * s[2] * s[4], s[3] * s[5]});
  node.set_output(0, node.rank(given) == 3 ? c.squeeze(columns, 0) : columns);
}

}  // namespace tensormill::frontend::pytorch
