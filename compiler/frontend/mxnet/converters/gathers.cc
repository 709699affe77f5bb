// Elements taken from places that tensors name.
#include "compiler/build/moves/places.h"
#include "compiler/build/numbers/arithmetic.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

/// Places as i64 within the axis, as `mode` says: the nearest one, or from the front again behind the end.
V places_within(NodeContext& node, V given, const ir::SymInt& extent, const std::string& mode) {
  Compose c(node);
  const V places = c.cast(given, DType::kInt64);
  const V count = c.dims({extent}, {});
  if (mode == "wrap") {
    build::ChannelsLast none;
    return build::floor_mod(node, none, places, count);
  }
  if (mode != "clip") node.unsupported("mode", "\"" + mode.substr(0, 40) + "\" is not implemented");
  return c.binary("min", c.binary("max", places, c.number(places, 0)), c.minus(count, 1));
}

/// One element of each row along the axis, which stays with an extent of 1.
V picked(NodeContext& node, V x, V places, int64_t axis) {
  Compose c(node);
  ir::SymShape along = node.shape(x);
  along[static_cast<size_t>(axis)] = 1;
  return c.gather_elements(x, c.reshape(places, along), axis);
}

}  // namespace

// Places that are none are the nearest ones.
void convert_embedding(NodeContext& node) {
  const V weight = node.input_or(1, "weight");
  if (node.rank(weight) != 2) node.invalid("weights of shape " + to_string(node.shape(weight)));
  const V places = places_within(node, node.input(0), node.shape(weight)[0], "clip");
  node.set_output(Compose(node).gather(weight, places, 0));
}

void convert_take(NodeContext& node) {
  const V x = node.input(0);
  const int64_t axis = node.axis("axis", node.rank(x), 0);
  const V places =
      places_within(node, node.input(1), node.shape(x)[static_cast<size_t>(axis)], node.text("mode", "clip"));
  node.set_output(Compose(node).gather(x, places, axis));
}

void convert_pick(NodeContext& node) {
  const V x = node.input(0);
  const int64_t axis = node.axis("axis", node.rank(x), -1);
  const V places =
      places_within(node, node.input(1), node.shape(x)[static_cast<size_t>(axis)], node.text("mode", "clip"));
  const V y = picked(node, x, places, axis);
  const bool keeps = node.flag("keepdims", false) || node.rank(y) == 1;
  node.set_output(keeps ? y : Compose(node).squeeze(y, axis));
}

void convert_batch_take(NodeContext& node) {
  const V x = node.input(0);
  if (node.rank(x) != 2) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  const V places = places_within(node, node.input(1), node.shape(x)[1], "clip");
  node.set_output(Compose(node).squeeze(picked(node, x, places, 1), 1));
}

// A place that is none is off everywhere.
void convert_one_hot(NodeContext& node) {
  Compose c(node);
  const V places = c.cast(node.input(0), DType::kInt64);
  const int64_t depth = node.integer("depth");
  if (depth < 0 || depth > build::kMaxListed) node.invalid("depth is " + std::to_string(depth));
  const DType dtype = node.dtype_named("dtype", DType::kFloat32);
  const V on = c.filled(dtype, {1}, node.real("on_value", 1)),
          off = c.filled(dtype, {1}, node.real("off_value", 0));
  const V inside = c.where(c.binary("less", places, c.number(places, 0)),
                           c.number(places, static_cast<double>(depth)), places);
  node.set_output(
      node.add("one_hot", {inside, c.concat({off, on}, 0)}, {{"axis", node.rank(places)}, {"depth", depth}}));
}

// The first axis of the places says one along each of the first axes.
void convert_gather_nd(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0), given = c.cast(node.input(1), DType::kInt64);
  std::vector<int64_t> perm;
  for (int64_t axis = 1; axis < node.rank(given); ++axis) perm.push_back(axis);
  perm.push_back(0);
  const V places = c.transpose(given, perm);
  const ir::SymInt depth = node.shape(given).at(0);
  if (!depth.is_constant() || depth.hint() < 1 || depth.hint() > node.rank(x))
    node.invalid("places along " + to_string(depth) + " axes of shape " + to_string(node.shape(x)));
  const ir::SymShape own = node.shape(x);
  const V extents = c.dims(ir::SymShape(own.begin(), own.begin() + depth.hint()), {depth.hint()});
  const V whole = c.where(c.binary("less", places, c.number(places, 0)), c.add(places, extents), places);
  node.set_output(build::gather_nd(node, x, whole));
}

}  // namespace tensormill::frontend::mxnet
