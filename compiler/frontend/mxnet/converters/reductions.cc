// Reductions along axes, places of extremes, and elements in order.
#include <algorithm>

#include "compiler/build/moves/places.h"
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

/// The axes that `axis` names, or, where `exclude` is set, all others; all where it names none.
ir::Ints reduced_axes(NodeContext& node, V x) {
  const ir::Ints named = node.axes("axis", node.rank(x));
  if (!node.flag("exclude", false) || node.ints("axis", std::vector<int64_t>()).empty()) return named;
  std::vector<int64_t> others;
  for (int64_t axis = 0; axis < node.rank(x); ++axis)
    if (std::find(named.begin(), named.end(), axis) == named.end()) others.push_back(axis);
  return others;
}

/// An array has an axis at least.
V with_axis(NodeContext& node, V x) { return node.rank(x) > 0 ? x : Compose(node).reshape(x, {1}); }

const char* reduction_of(NodeContext& node) {
  const std::string_view op = node.op();
  if (op.starts_with("sum")) return "reduce_sum";
  if (op == "mean") return "reduce_mean";
  if (op.starts_with("max")) return "reduce_max";
  if (op.starts_with("min")) return "reduce_min";
  if (op == "prod") return "reduce_prod";
  node.invalid("it has a converter of other operators");
}

/// x, as one axis where the attribute names none.
V along_some_axis(NodeContext& node, V x, int64_t otherwise, int64_t& axis) {
  const bool is_flat = node.op() != "argmax_channel" && !node.has("axis") &&
                       node.node().attributes.find("axis") != node.node().attributes.end();
  if (is_flat) x = Compose(node).reshape(x, {num_elements(node.shape(x))});
  axis = is_flat ? 0 : node.axis("axis", node.rank(x), otherwise);
  return x;
}

}  // namespace

void convert_reduce(NodeContext& node) {
  const V x = node.input(0);
  const ir::Ints axes = reduced_axes(node, x);
  const V y = Compose(node).reduce(reduction_of(node), x, axes, node.flag("keepdims", false));
  node.set_output(with_axis(node, y));
}

void convert_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const int64_t order = node.integer("ord", 2);
  if (order != 1 && order != 2) node.unsupported("ord", std::to_string(order) + " is not implemented");
  const V y = c.reduce(order == 1 ? "reduce_l1" : "reduce_l2", x, node.axes("axis", node.rank(x)),
                       node.flag("keepdims", false));
  node.set_output(with_axis(node, c.cast(y, node.dtype_named("out_dtype", node.dtype(y)))));
}

// Places have the type of the elements. Without an axis they are those of all elements.
void convert_arg_reduce(NodeContext& node) {
  Compose c(node);
  V x = node.input(0);
  const DType dtype = node.dtype(x);
  const bool is_channel = node.op() == "argmax_channel", is_flat = !is_channel && !node.has("axis");
  const ir::SymShape ones(node.shape(x).size(), 1);
  if (is_flat) x = c.reshape(x, {num_elements(node.shape(x))});
  const int64_t axis = is_flat ? 0 : node.axis("axis", node.rank(x), 1);
  const bool keeps = node.flag("keepdims", false);
  V y = node.add(node.op() == "argmin" ? "arg_min" : "arg_max", {x},
                 {{"axis", axis}, {"keepdims", int64_t{keeps}}, {"select_last", int64_t{0}}});
  if (is_flat && keeps) y = c.reshape(y, ones);
  node.set_output(with_axis(node, c.cast(y, dtype)));
}

// ret_typ: value, indices, both, or a mask of 1 where an element is among them.
void convert_topk(NodeContext& node) {
  Compose c(node);
  int64_t axis = 0;
  const V x = along_some_axis(node, node.input(0), -1, axis);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const int64_t given = node.integer("k", 1);
  const ir::SymInt k = given < 1 ? extent : ir::SymInt(given);
  if (!ir::demand(ir::Relation::kLessEqual, k, extent))
    node.invalid("k is " + to_string(k) + " for an axis of " + to_string(extent));
  const std::string kind = node.text("ret_typ", "indices");
  if (kind == "mask") node.unsupported("ret_typ", "masks are not implemented");
  if (kind != "value" && kind != "indices" && kind != "both")
    node.invalid("ret_typ is \"" + kind.substr(0, 40) + "\"");
  const V places =
      build::ordered_places(node, build::orderable(node, x), axis, k, node.flag("is_ascend", false));
  const V shown = c.cast(places, node.dtype_named("dtype", DType::kFloat32));
  if (kind == "indices") return node.set_output(shown);
  node.set_output(0, c.gather_elements(x, places, axis));
  if (kind == "both") node.set_output(1, shown);
}

// sort and argsort.
void convert_sort(NodeContext& node) {
  Compose c(node);
  int64_t axis = 0;
  const V x = along_some_axis(node, node.input(0), -1, axis);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const V places =
      build::ordered_places(node, build::orderable(node, x), axis, extent, node.flag("is_ascend", true));
  node.set_output(node.op() == "sort" ? c.gather_elements(x, places, axis)
                                      : c.cast(places, node.dtype_named("dtype", DType::kFloat32)));
}

}  // namespace tensormill::frontend::mxnet
