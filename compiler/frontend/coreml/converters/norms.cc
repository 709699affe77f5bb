// Elements less their mean, by their deviation, or by their length.
#include <algorithm>

#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

/// [C] beside maps [N,C,...]
V channel_row(NodeContext& node, const char* name, V x) {
  const V row = node.tensor(name);
  ir::SymShape shape(node.shape(x).size(), 1);
  shape[1] = num_elements(node.shape(row));
  return Compose(node).reshape(row, shape);
}

}  // namespace

// Axes in the middle are brought to the end.
void convert_layer_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  const int64_t rank = node.rank(x);
  const ir::Ints axes = node.axes("axes", rank);
  if (axes.empty()) node.invalid("it has no axes");
  std::vector<int64_t> forth, back(static_cast<size_t>(rank));
  for (int64_t axis = 0; axis < rank; ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) forth.push_back(axis);
  const auto first = static_cast<int64_t>(forth.size());
  forth.insert(forth.end(), axes.begin(), axes.end());
  for (size_t i = 0; i < forth.size(); ++i) back[static_cast<size_t>(forth[i])] = static_cast<int64_t>(i);
  std::vector<V> operands{c.transpose(x, forth)};
  const V gamma = node.optional_tensor("gamma"), beta = node.optional_tensor("beta");
  if (gamma != ir::kAbsent || beta != ir::kAbsent) operands.push_back(gamma);
  if (beta != ir::kAbsent) operands.push_back(beta);
  const V y = node.add("layer_norm", operands, {{"axis", first}, {"epsilon", node.real("epsilon", 1e-5)}});
  node.set_output(c.transpose(y, back));
}

void convert_instance_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 3) node.invalid("the input has rank " + std::to_string(shape.size()));
  const ir::SymInt rest = num_elements(ir::SymShape(shape.begin() + 2, shape.end()));
  const V rows = c.reshape(x, {shape[0], shape[1], rest});
  const ir::Attrs attrs{{"axis", int64_t{2}}, {"epsilon", node.real("epsilon", 1e-5)}};
  V y = c.reshape(node.add("layer_norm", {rows}, attrs), shape);
  if (node.has("gamma")) y = c.mul(y, channel_row(node, "gamma", x));
  if (node.has("beta")) y = c.add(y, channel_row(node, "beta", x));
  node.set_output(y);
}

// By the length of what the last three axes hold.
void convert_l2_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  const int64_t rank = node.rank(x);
  if (rank < 3) node.invalid("the input has rank " + std::to_string(rank));
  const V squares = c.reduce("reduce_sum_square", x, {rank - 3, rank - 2, rank - 1}, true);
  node.set_output(c.div(x, c.unary("sqrt", c.plus(squares, node.real("epsilon", 1e-6)))));
}

void convert_local_response_norm(NodeContext& node) {
  const int64_t size = node.integer("size");
  if (size < 1 || size > (1 << 20)) node.invalid("a neighbourhood of " + std::to_string(size));
  node.set_output(node.add("lrn", {node.tensor("x")},
                           {{"size", size},
                            {"alpha", node.real("alpha", 1e-4)},
                            {"beta", node.real("beta", 0.75)},
                            {"bias", node.real("k", 1)}}));
}

}  // namespace tensormill::frontend::coreml
