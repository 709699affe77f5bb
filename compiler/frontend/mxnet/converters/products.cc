// Products of matrices.
#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

void skip_storage(NodeContext& node) { node.skip("forward_stype"); }

ir::SymInt product_of(const ir::SymShape& shape, size_t begin, size_t end) {
  return num_elements(ir::SymShape(shape.begin() + static_cast<std::ptrdiff_t>(begin),
                                   shape.begin() + static_cast<std::ptrdiff_t>(end)));
}

ir::Attrs turned(NodeContext& node) {
  return {{"transpose_a", int64_t{node.flag("transpose_a", false)}},
          {"transpose_b", int64_t{node.flag("transpose_b", false)}}};
}

}  // namespace

// Summed along the last axis of the first operand, or, transposed, its first one, and the first one of the
// second, or its last one.
void convert_dot(NodeContext& node) {
  Compose c(node);
  skip_storage(node);
  const V a = node.input(0), b = node.input(1);
  const ir::SymShape left = node.shape(a), right = node.shape(b);
  if (left.empty() || right.empty()) node.invalid("an operand has no dims");
  const bool turns_a = node.flag("transpose_a", false) && left.size() > 1,
             turns_b = node.flag("transpose_b", false) && right.size() > 1;
  const size_t m = left.size(), n = right.size();
  const V rows = turns_a ? c.reshape(a, {left[0], product_of(left, 1, m)})
                         : c.reshape(a, {product_of(left, 0, m - 1), left[m - 1]});
  const V columns = turns_b ? c.reshape(b, {product_of(right, 0, n - 1), right[n - 1]})
                            : c.reshape(b, {right[0], product_of(right, 1, n)});
  const V y = node.add("matmul", {rows, columns},
                       {{"transpose_a", int64_t{turns_a}}, {"transpose_b", int64_t{turns_b}}});
  ir::SymShape to(left.begin() + (turns_a ? 1 : 0), left.end() - (turns_a ? 0 : 1));
  to.insert(to.end(), right.begin() + (turns_b ? 0 : 1), right.end() - (turns_b ? 1 : 0));
  if (to.empty()) to.push_back(1);
  node.set_output(c.reshape(y, to));
}

void convert_batch_dot(NodeContext& node) {
  skip_storage(node);
  node.set_output(node.add("matmul", {node.input(0), node.input(1)}, turned(node)));
}

void convert_gemm2(NodeContext& node) {
  if (node.integer("axis", -2) != -2) node.unsupported("axis", "matrices of other axes are not implemented");
  const double alpha = node.real("alpha", 1);
  const V y = node.add("matmul", {node.input(0), node.input(1)}, turned(node));
  node.set_output(alpha == 1 ? y : Compose(node).times(y, alpha));
}

}  // namespace tensormill::frontend::mxnet
