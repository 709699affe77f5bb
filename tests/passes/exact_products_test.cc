/// Integer products in float32: taken where every sum is exact, the same bits, and left alone elsewhere.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::count;

/// Multiples of `step`, modulo `span`, from `low` on.
Tensor integers(DType dtype, Shape shape, int64_t low, int64_t span, int64_t step) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_element_int(i, low + i * step % span);
  return tensor;
}

struct Product {
  int64_t depth;
  int64_t largest = 127;  ///< weight
  bool transposed = false;
  bool constant = true;  ///< weights
  DType data = DType::kUInt8;
};

/// (x - 3) times (w - 1), x of the given type, w of int8.
ir::Graph product_net(const Product& product) {
  ir::Graph graph(ops::standard_ops());
  const auto wide = [&](ir::ValueId value) {
    return graph.add_node("cast", {value}, {{"to", DType::kInt32}})[0];
  };
  const auto scalar = [&](int64_t value) {
    return graph.add_constant(graph.unique_name("zero"), integers(DType::kInt32, {}, value, 1, 0));
  };
  const Shape shape = product.transposed ? Shape{21, product.depth} : Shape{product.depth, 21};
  const ir::ValueId x = graph.add_input("x", {product.data, {2, 3, product.depth}});
  const ir::ValueId w = product.constant
                            ? graph.add_constant("w", integers(DType::kInt8, shape, -product.largest,
                                                               2 * product.largest + 1, 37))
                            : graph.add_input("w", {DType::kInt8, shape});
  const ir::ValueId left = graph.add_node("sub", {wide(x), scalar(3)})[0];
  const ir::ValueId right = graph.add_node("sub", {wide(w), scalar(1)})[0];
  graph.set_outputs(graph.add_node("matmul", {left, right}, {{"transpose_b", int64_t{product.transposed}}}));
  return graph;
}

/// How many products of float32 are there in the end; all answers are the same.
int64_t rewritten(const Product& product) {
  const ir::Graph graph = product_net(product);
  const ir::Graph result = passes::exact_products(graph, {});
  ir::verify(result);
  std::vector<Tensor> inputs;
  for (const ir::ValueId id : graph.inputs()) {
    const ir::ValueType& type = graph.value(id).type;
    const bool is_signed = type.dtype == DType::kInt8;
    inputs.push_back(integers(type.dtype, type.shape, is_signed ? -128 : 0, 256, 101));
  }
  const Tensor expected = ir::evaluate_reference(graph, inputs)[0];
  const Tensor actual = ir::evaluate_reference(result, inputs)[0];
  EXPECT_EQ(actual.dtype(), DType::kInt32);
  for (int64_t i = 0; i < expected.num_elements(); ++i)
    EXPECT_EQ(actual.element_as_int(i), expected.element_as_int(i));
  int64_t products = 0;
  for (const ir::Node& node : result.nodes()) {
    if (node.op == "matmul" && result.value(node.outputs[0]).type.dtype == DType::kFloat32) ++products;
  }
  EXPECT_EQ(count(result, "matmul"), std::max<int64_t>(products, 1));
  return products;
}

TEST(ExactProducts, TakesBytesByAConstantMatrix) {
  EXPECT_EQ(rewritten({.depth = 40}), 1);
  EXPECT_EQ(rewritten({.depth = 40, .transposed = true}), 1);
  EXPECT_EQ(rewritten({.depth = 40, .data = DType::kInt8}), 1);
}

/// The weights' own sums count: 1,400 of at most 20 stay below 2^24 where as many of 127 do not.
TEST(ExactProducts, CutsADepthWhoseSumsMayPassTheExactOnes) {
  EXPECT_EQ(rewritten({.depth = 1400, .largest = 20}), 1);
  EXPECT_EQ(rewritten({.depth = 1400}), 2);
  EXPECT_EQ(rewritten({.depth = 1400, .transposed = true}), 2);
}

TEST(ExactProducts, TakesTwoOperandsThatAreData) {
  EXPECT_EQ(rewritten({.depth = 64, .constant = false}), 1);
  EXPECT_EQ(rewritten({.depth = 1400, .constant = false}), 0) << "might pass 2^24";
}

/// At other extents of a free depth sums may pass 2^24.
TEST(ExactProducts, LeavesAFreeDepth) {
  ir::Graph graph(ops::standard_ops());
  graph.set_symbols(std::make_shared<ir::SymbolTable>());
  const ir::SymInt depth = graph.symbols()->add("K", 64);
  const auto wide = [&](ir::ValueId value) {
    return graph.add_node("cast", {value}, {{"to", DType::kInt32}})[0];
  };
  const ir::ValueId x = graph.add_input("x", {DType::kUInt8, {2, depth}});
  const ir::ValueId w = graph.add_input("w", {DType::kInt8, {depth, 3}});
  graph.set_outputs(graph.add_node("matmul", {wide(x), wide(w)}));
  const ir::Graph result = passes::exact_products(graph, {});
  for (const ir::Node& node : result.nodes())
    EXPECT_FALSE(node.op == "matmul" && result.value(node.outputs[0]).type.dtype != DType::kInt32);
}

TEST(ExactProducts, LeavesWideIntegers) {
  EXPECT_EQ(rewritten({.depth = 40, .data = DType::kInt16}), 0);
  EXPECT_EQ(rewritten({.depth = 40, .data = DType::kInt32}), 0);
}

}  // namespace
}  // namespace tensormill
