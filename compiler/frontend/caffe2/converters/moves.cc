// What moves elements, or sees them in another shape.
#include "compiler/build/moves/moves.h"

#include <algorithm>

#include "compiler/build/moves/places.h"
#include "compiler/frontend/caffe2/converters/windows.h"

namespace tensormill::frontend::caffe2 {

namespace {

/// The axis of argument `axis`, or that of the channels.
int64_t joined_axis(NodeContext& node, int64_t rank) {
  if (node.has("axis") && node.op() != "DepthConcat" && node.op() != "DepthSplit") {
    node.has("order");
    return node.axis("axis", rank);
  }
  // That of integers takes no order for granted.
  if (node.node().type == "Int8Concat" && !node.has("order")) return node.normalize_axis(0, rank);
  return node.normalize_axis(node.is_channels_last() ? rank - 1 : 1, rank);
}

ir::SymShape permuted(const ir::SymShape& shape, const std::vector<int64_t>& perm) {
  ir::SymShape to;
  for (const int64_t axis : perm) to.push_back(shape[static_cast<size_t>(axis)]);
  return to;
}

/// 0, last, 1 ... or 0, 2 ... last, 1.
std::vector<int64_t> order_change(int64_t rank, bool to_last) {
  std::vector<int64_t> perm{0};
  if (!to_last) perm.push_back(rank - 1);
  for (int64_t d = to_last ? 2 : 1; d < (to_last ? rank : rank - 1); ++d) perm.push_back(d);
  if (to_last) perm.push_back(1);
  return perm;
}

/// Argument `name`, or operand 1.
ir::SymShape numbers_of(NodeContext& node, const char* name, size_t operand, std::optional<int64_t> low) {
  return node.has_operand(operand) ? node.numbers(operand, low) : ir::SymShape(node.ints(name));
}

/// The second output of what sees elements in another shape: the shape before.
void set_old_shape(NodeContext& node, V x) {
  if (node.has_output(1)) node.set_output(1, node.extents(node.shape(x)));
}

}  // namespace

void convert_identity(NodeContext& node) { node.set_alias(); }

// Its mask is of training alone.
void convert_dropout(NodeContext& node) {
  if (!node.flag("is_test", false))
    node.unsupported("is_test", "elements are dropped for training: save the net for inference");
  node.set_alias();
}

// Entries of 0 leave their axis.
void convert_reshape(NodeContext& node) {
  const V x = node.operand(0);
  const ir::SymShape from = node.shape(x);
  ir::SymShape to = numbers_of(node, "shape", 1, std::nullopt);
  for (size_t d = 0; d < to.size(); ++d) {
    if (!same(to[d], 0)) continue;
    if (d >= from.size()) node.invalid("entry " + std::to_string(d) + " of the shape is 0");
    to[d] = from[d];
  }
  set_old_shape(node, x);
  node.set_output(Compose(node).reshape(x, build::settled_shape(node, from, to)));
}

void convert_resize_like(NodeContext& node) {
  const V x = node.operand(0);
  const ir::SymShape to = node.shape(node.operand(1));
  node.set_output(Compose(node).reshape(x, build::settled_shape(node, node.shape(x), to)));
}

void convert_flatten(NodeContext& node) {
  const V x = node.operand(0);
  const int64_t rank = node.rank(x), given = node.integer("axis", 1);
  node.set_output(node.as_rows(x, given == rank ? rank : node.normalize_axis(given, rank)));
}

void convert_flatten_to_vec(NodeContext& node) {
  const V x = node.operand(0);
  node.set_output(Compose(node).reshape(x, {num_elements(node.shape(x))}));
}

void convert_squeeze(NodeContext& node) {
  const V x = node.operand(0);
  const ir::SymShape from = node.shape(x);
  const ir::Ints dims = node.ints("dims");
  for (const int64_t dim : dims)
    if (dim < 0 || dim >= static_cast<int64_t>(from.size()))
      node.invalid("argument dims has " + std::to_string(dim));
  node.set_output(Compose(node).reshape(x, build::squeezed_shape(node, from, dims)));
}

// Places are those in the result, in order.
void convert_expand_dims(NodeContext& node) {
  const V x = node.operand(0);
  ir::Ints dims = node.ints("dims");
  std::sort(dims.begin(), dims.end());
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  ir::SymShape to = node.shape(x);
  constexpr size_t kMostAxes = 64;
  if (dims.size() > kMostAxes) node.invalid("argument dims has " + std::to_string(dims.size()) + " axes");
  for (const int64_t dim : dims) {
    if (dim < 0 || dim > static_cast<int64_t>(to.size()))
      node.invalid("argument dims has " + std::to_string(dim));
    to.insert(to.begin() + dim, 1);
  }
  node.set_output(Compose(node).reshape(x, to));
}

// Without axes all of them in reverse.
void convert_transpose(NodeContext& node) {
  const V x = node.operand(0);
  const int64_t rank = node.rank(x);
  ir::Ints perm = node.ints("axes");
  const bool is_said = !perm.empty();
  for (int64_t d = rank; !is_said && d > 0; --d) perm.push_back(d - 1);
  if (static_cast<int64_t>(perm.size()) != rank)
    node.invalid("argument axes has " + std::to_string(perm.size()) + " axes");
  for (int64_t& axis : perm) axis = node.normalize_axis(axis, rank);
  node.set_output(Compose(node).transpose(x, perm));
}

// NCHW2NHWC and NHWC2NCHW.
void convert_order(NodeContext& node) {
  const V x = node.operand(0);
  if (node.rank(x) < 3) node.invalid("operand 0 has rank " + std::to_string(node.rank(x)));
  node.set_output(Compose(node).transpose(x, order_change(node.rank(x), node.op() == "NCHW2NHWC")));
}

// The second output says the extents of the parts.
void convert_concat(NodeContext& node) {
  Compose c(node);
  ir::CheckedList<V> parts = node.operands();
  const bool is_stacked = node.flag("add_axis", false);
  const int64_t axis = joined_axis(node, node.rank(parts[0]) + int64_t{is_stacked});
  ir::SymShape extents;
  for (V& part : parts) {
    if (node.rank(part) != node.rank(parts[0])) node.invalid("parts of different rank");
    extents.push_back(is_stacked ? ir::SymInt(1) : node.shape(part)[static_cast<size_t>(axis)]);
  }
  if (is_stacked)
    for (V& part : parts) part = c.unsqueeze(part, axis);
  node.set_output(c.concat(parts, axis));
  if (node.has_output(1)) node.set_output(1, c.cast(node.extents(extents), DType::kInt32));
}

// Parts of argument split, of operand 1, or as many alike as there are outputs.
void convert_split(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0);
  const int64_t axis = joined_axis(node, node.rank(x));
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const auto count = static_cast<int64_t>(node.num_outputs());
  ir::SymShape sizes = numbers_of(node, "split", 1, 0);
  if (sizes.empty()) {
    if (count == 0 || !ir::demand_divisible(extent, count))
      node.invalid("an axis of " + to_string(extent) + " does not divide by " + std::to_string(count));
    sizes = ir::SymShape(static_cast<size_t>(count), floordiv(extent, count));
  }
  build::ChannelsLast none;
  std::vector<V> parts = build::split(node, none, x, axis, sizes);
  if (node.flag("add_axis", false))
    for (V& part : parts) part = c.squeeze(part, axis);
  node.set_outputs(parts);
}

// An end of -1 is the axis', and one before it less.
void convert_slice(NodeContext& node) {
  Compose c(node);
  V y = node.operand(0);
  const ir::SymShape starts = numbers_of(node, "starts", 1, std::nullopt),
                     ends = numbers_of(node, "ends", 2, std::nullopt), shape = node.shape(y);
  if (starts.size() != ends.size() || starts.size() > shape.size())
    node.invalid("starts and ends have " + std::to_string(starts.size()) + " and " +
                 std::to_string(ends.size()) + " elements for rank " + std::to_string(shape.size()));
  for (size_t d = 0; d < starts.size(); ++d) {
    const auto placed = [&](const ir::SymInt& at) {
      return at < 0 ? max(at + 1 + shape[d], 0) : min(at, shape[d]);
    };
    const ir::SymInt start = placed(starts[d]), end = placed(ends[d]);
    if (!ir::demand(ir::Relation::kLessEqual, start, end))
      node.invalid("a slice from " + to_string(starts[d]) + " to " + to_string(ends[d]) + " of an axis of " +
                   to_string(shape[d]));
    y = c.slice(y, static_cast<int64_t>(d), start, end - start);
  }
  node.set_output(y);
}

void convert_gather(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0);
  const int64_t axis = node.op() == "BatchGather" ? 1 : node.axis("axis", node.rank(x), 0);
  if (node.flag("match_outer", false))
    node.unsupported("match_outer", "axes that go together are not implemented");
  node.has("wrap_indices");  // places from the end are taken in any case
  if (axis >= node.rank(x)) node.invalid("operand 0 has rank " + std::to_string(node.rank(x)));
  node.set_output(build::batched_gather(node, x, c.cast(node.operand(1), DType::kInt64), axis, 0));
}

void convert_shape(NodeContext& node) {
  const ir::SymShape shape = node.shape(node.operand(0));
  ir::Ints axes = node.ints("axes");
  if (axes.empty()) return node.set_output(node.extents(shape));
  for (int64_t& axis : axes) axis = node.normalize_axis(axis, static_cast<int64_t>(shape.size()));
  node.set_output(node.extents(permuted(shape, axes)));
}

// So often along one axis.
void convert_tile(NodeContext& node) {
  const V x = node.operand(0);
  const auto number = [&](const char* name, size_t operand, int64_t otherwise) {
    if (!node.has_operand(operand)) return ir::SymInt(node.integer(name, otherwise));
    const ir::SymShape all = node.numbers(operand);
    if (all.size() != 1) node.invalid("operand " + std::to_string(operand) + " is no number");
    return all[0];
  };
  const ir::SymInt tiles = number("tiles", 1, 1), axis = number("axis", 2, 0);
  if (!axis.is_constant()) node.unsupported("axis", "it is worked out by a run");
  ir::SymShape repeats(node.shape(x).size(), 1);
  repeats[static_cast<size_t>(node.normalize_axis(axis.hint(), node.rank(x)))] = tiles;
  node.set_output(node.add("tile", {x}, {{"repeats", repeats}, {"each", int64_t{0}}}));
}

void convert_numpy_tile(NodeContext& node) {
  const V x = node.operand(0);
  const ir::SymShape repeats = node.numbers(1, 0);
  if (repeats.size() != node.shape(x).size())
    node.invalid("operand 1 has " + std::to_string(repeats.size()) + " elements");
  node.set_output(node.add("tile", {x}, {{"repeats", repeats}, {"each", int64_t{0}}}));
}

void convert_pad_image(NodeContext& node) {
  const V x = node.operand(0);
  if (node.rank(x) != 4) node.invalid("operand 0 has rank " + std::to_string(node.rank(x)));
  const ir::Ints given = pads_of(node, 2);
  const size_t first = node.is_channels_last() ? 1 : 2;
  std::vector<int64_t> pads(8, 0);
  for (size_t d = 0; d < 2; ++d) {
    pads[first + d] = given[d];
    pads[first + d + 4] = given[d + 2];
  }
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge")
    node.invalid("argument mode is \"" + mode + "\"");
  node.set_output(
      node.add("pad", {x}, {{"pads", ir::SymShape(pads)}, {"mode", mode}, {"value", node.real("value", 0)}}));
}

// [groups,C/groups] channels become [C/groups,groups].
void convert_channel_shuffle(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0);
  const int64_t groups = node.integer("group"), rank = node.rank(x);
  const int64_t axis = node.normalize_axis(node.is_channels_last() ? rank - 1 : 1, rank);
  const ir::SymShape from = node.shape(x);
  const ir::SymInt& channels = from[static_cast<size_t>(axis)];
  if (groups < 1 || !ir::demand_divisible(channels, groups))
    node.invalid(to_string(channels) + " channels in " + std::to_string(groups) + " groups");
  ir::SymShape parts = from;
  parts[static_cast<size_t>(axis)] = groups;
  parts.insert(parts.begin() + axis + 1, floordiv(channels, groups));
  std::vector<int64_t> perm;
  for (int64_t d = 0; d <= rank; ++d) perm.push_back(d == axis ? axis + 1 : d == axis + 1 ? axis : d);
  node.set_output(c.reshape(c.transpose(c.reshape(x, parts), perm), from));
}

}  // namespace tensormill::frontend::caffe2
