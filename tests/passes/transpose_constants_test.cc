/// Products by transposed constants, where nothing packs them: the same values from a constant turned round.
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::count;
using small_nets::expect_same;

ir::Graph two_products(DType dtype, bool is_free) {
  small_nets::Net net;
  const ir::ValueId x = net.add("cast", {net.input({3, 5}, is_free ? "M." : "")}, {{"to", dtype}});
  const ir::ValueId y = net.add("cast", {net.input({2, 4, 5}, is_free ? "N.." : "")}, {{"to", dtype}});
  Tensor values(dtype, {7, 5});
  for (int64_t i = 0; i < values.num_elements(); ++i) values.set_element(i, static_cast<double>(i % 11) - 4);
  const ir::ValueId matrix = net.graph.add_constant("matrix", values);
  std::vector<ir::ValueId> outputs;
  for (const ir::ValueId left : {x, y}) {
    const ir::ValueId product = net.add("matmul", {left, matrix}, {{"transpose_b", int64_t{1}}});
    outputs.push_back(net.add("cast", {product}, {{"to", DType::kFloat32}}));
  }
  return net.finish(outputs);
}

int64_t transposed(const ir::Graph& graph) {
  int64_t found = 0;
  for (const ir::Node& node : graph.nodes())
    found += node.op == "matmul" && node.attrs.int_of("transpose_b") != 0 ? 1 : 0;
  return found;
}

TEST(TransposeConstants, TurnsThoseOfFreeExtentsAndOfOtherFloats) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
    for (const bool is_free : {false, true}) {
      passes::PassContext context;
      context.is_generic = true;
      const ir::Graph graph = two_products(dtype, is_free);
      const ir::Graph result = passes::transpose_constants(graph, context);
      if (is_free) {
        expect_same(small_nets::at_hints(graph), small_nets::at_hints(result), 0);
      } else {
        expect_same(graph, result, 0);
      }
      EXPECT_EQ(transposed(result), dtype == DType::kFloat32 && !is_free ? 2 : 0);
      EXPECT_EQ(count(result, "matmul"), 2);
    }
  }
}

TEST(TransposeConstants, LeavesMatricesOfARunAlone) {
  small_nets::Net net;
  const ir::Graph graph = net.finish(
      {net.add("matmul", {net.input({3, 5}, "M."), net.input({7, 5})}, {{"transpose_b", int64_t{1}}})});
  passes::PassContext context;
  context.is_generic = true;
  EXPECT_EQ(transposed(passes::transpose_constants(graph, context)), 1);
}

}  // namespace
}  // namespace tensormill
