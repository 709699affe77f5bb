// Reductions along axes, and sums that run along one.
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

std::string reduction_of(std::string_view op) {
  if (op == "reduce_l1_norm") return "reduce_l1";
  if (op == "reduce_l2_norm") return "reduce_l2";
  return std::string(op);
}

}  // namespace

void convert_reduce(NodeContext& node) {
  const V x = node.tensor("x");
  const ir::Ints axes = node.axes("axes", node.rank(x));
  const bool keeps = node.flag("keep_dims", false);
  if (axes.empty() && node.op() != "reduce_sum" && node.op() != "reduce_mean" && node.op() != "reduce_max" &&
      node.op() != "reduce_min" && node.op() != "reduce_prod")
    node.unsupported("axes", "none are not implemented");
  node.set_cast(0, Compose(node).reduce(reduction_of(node.op()).c_str(), x, axes, keeps));
}

// Of equals the first.
void convert_arg_reduce(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  node.skip("output_dtype");  // the output says it
  const int64_t axis = node.axis("axis", node.rank(x), -1);
  const V places = node.add(
      node.op() == "reduce_argmax" ? "arg_max" : "arg_min", {x},
      {{"axis", axis}, {"keepdims", int64_t{node.flag("keep_dims", false)}}, {"select_last", int64_t{0}}});
  node.set_cast(0, places);
}

void convert_cumsum(NodeContext& node) {
  const V x = node.tensor("x");
  node.set_output(node.add("cumsum", {x},
                           {{"axis", node.axis("axis", node.rank(x), 0)},
                            {"exclusive", int64_t{node.flag("exclusive", false)}},
                            {"reverse", int64_t{node.flag("reverse", false)}}}));
}

}  // namespace tensormill::frontend::coreml
