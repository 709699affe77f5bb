// Reductions along axes, and elements in order.

#include "compiler/build/moves/places.h"
#include "compiler/frontend/caffe2/node_context.h"

namespace tensormill::frontend::caffe2 {

namespace {

const char* reduction_of(NodeContext& node) {
  const std::string_view op = node.op();
  if (op.ends_with("Sum")) return "reduce_sum";
  if (op.ends_with("Mean")) return "reduce_mean";
  if (op.ends_with("Max")) return "reduce_max";
  if (op.ends_with("Min")) return "reduce_min";
  return op.ends_with("L1") ? "reduce_l1" : "reduce_l2";
}

/// x with `value` behind its elements along the axis, where these are fewer than `count`.
V filled_up(NodeContext& node, V x, int64_t axis, const ir::SymInt& count, double value) {
  const auto rank = node.shape(x).size(), at = static_cast<size_t>(axis);
  const ir::SymInt missing = count - node.shape(x)[at];
  if (same(missing, 0)) return x;
  ir::SymShape pads(2 * rank, 0);
  pads[at + rank] = missing;
  return node.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", value}});
}

}  // namespace

// Along all axes where none are named.
void convert_reduce(NodeContext& node) {
  const V x = node.operand(0);
  Compose c(node);
  const ir::Ints axes =
      node.has("axes") ? node.normalize_axes(node.ints("axes"), node.rank(x)) : c.count_to(node.rank(x));
  const bool keeps = node.flag("keepdims", true);
  node.set_output(c.reduce(reduction_of(node), x, axes, keeps));
}

// ReduceFront... along the first axes, ReduceBack... along the last.
void convert_reduce_side(NodeContext& node) {
  const V x = node.operand(0);
  const int64_t rank = node.rank(x), count = node.integer("num_reduce_dim", 1);
  if (count < 0 || count > rank)
    node.invalid(std::to_string(count) + " axes of rank " + std::to_string(rank));
  const int64_t first = node.op().starts_with("ReduceFront") ? 0 : rank - count;
  std::vector<int64_t> axes;
  for (int64_t d = first; d < first + count; ++d) axes.push_back(d);
  node.set_output(Compose(node).reduce(reduction_of(node), x, axes, false));
}

// Of equals the first.
void convert_arg_reduce(NodeContext& node) {
  const V x = node.operand(0);
  const int64_t axis = node.axis("axis", node.rank(x), -1);
  node.set_output(node.add(
      node.op() == "ArgMax" ? "arg_max" : "arg_min", {x},
      {{"axis", axis}, {"keepdims", int64_t{node.flag("keepdims", true)}}, {"select_last", int64_t{0}}}));
}

// Outputs: the largest elements, their places along the axis, and those among all elements. Where there are
// fewer elements, 0 stands behind them, and -1 behind their places.
void convert_top_k(NodeContext& node) {
  Compose c(node);
  const V x = node.operand(0);
  const int64_t axis = node.axis("axis", node.rank(x), -1), k = node.integer("k");
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  if (k < 1) node.invalid("k is " + std::to_string(k));
  const V places = build::ordered_places(node, x, axis, extent < k ? extent : ir::SymInt(k), false);
  node.set_output(0, filled_up(node, c.gather_elements(x, places, axis), axis, k, 0));
  if (node.has_output(1)) node.set_output(1, filled_up(node, places, axis, k, -1));
  if (!node.has_output(2)) return;
  const ir::SymShape shape = node.shape(x);
  V flat = places;
  ir::SymInt step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const bool is_own = static_cast<int64_t>(d) == axis;
    const V at = is_own ? places : c.positions(shape[d], d, shape.size());
    const V part = c.mul(at, c.dims({step}, {}));
    flat = d + 1 == shape.size() ? part : c.add(flat, part);
    step = step * shape[d];
  }
  flat = filled_up(node, flat, axis, k, -1);
  node.set_output(2, c.reshape(flat, {num_elements(node.shape(flat))}));
}

}  // namespace tensormill::frontend::caffe2
