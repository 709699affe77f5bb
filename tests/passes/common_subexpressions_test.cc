/// Expressions of equal operands are one; constants are equal whose bytes all are.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::Net;

/// How many products are left of x by each of the matrices.
int64_t products_of(const std::vector<Tensor>& matrices) {
  Net net;
  const ir::ValueId x = net.input({2, matrices.at(0).shape()[0]});
  std::vector<ir::ValueId> products;
  for (size_t i = 0; i < matrices.size(); ++i)
    products.push_back(net.add("matmul", {x, net.graph.add_constant("m" + std::to_string(i), matrices[i])}));
  const ir::Graph graph = net.finish(products);
  const ir::Graph result = passes::remove_dead_code(passes::eliminate_common_subexpressions(graph, {}), {});
  small_nets::expect_same(graph, result);
  return std::count_if(result.nodes().begin(), result.nodes().end(),
                       [](const ir::Node& node) { return node.op == "matmul"; });
}

Tensor numbers(int64_t rows, int64_t columns) {
  Tensor tensor = Tensor::zeros(DType::kFloat32, {rows, columns});
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.values<float>()[static_cast<size_t>(i)] = 0.01F * static_cast<float>(i % 7);
  return tensor;
}

TEST(CommonSubexpressions, ConstantsAreOneWhereEveryByteIsTheSame) {
  const Tensor matrix = numbers(40, 30);
  EXPECT_EQ(products_of({matrix, numbers(40, 30), numbers(40, 30)}), 1);
  EXPECT_EQ(products_of({matrix, matrix.reshaped({40, 30}), numbers(40, 31)}), 2);
  for (const size_t place : {0U, 1U, 100U, 599U, 600U, 700U, 1198U, 1199U}) {
    Tensor other = numbers(40, 30);
    other.values<float>()[place] = 5;
    EXPECT_EQ(products_of({matrix, other, numbers(40, 30)}), 2) << place;
  }
}

}  // namespace
}  // namespace tensormill
