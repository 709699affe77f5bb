/// Products in halves: where they are faster and accurate, with the same answers; the plain form elsewhere.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/op_def.h"
#include "compiler/ops/products/strassen.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/products/strassen_error.h"
#include "tests/passes/small_nets.h"

namespace tensormill::strassen_products_test {
namespace {

using small_nets::count;
using small_nets::Net;

/// Of a core that starts one multiply-add of 512 bits a cycle.
passes::PassContext facts_of_one() {
  passes::PassContext context;
  context.facts = {512, 32, true, false, false, false, 32 * 1024, 1024 * 1024, 1};
  context.facts.products_per_cycle = 1;
  return context;
}

ir::Graph chosen(const ir::Graph& graph) {
  const passes::PassContext context = facts_of_one();
  const ir::Graph packed = passes::pack_matmul(passes::alter_layout(graph, context), context);
  ir::Graph result = passes::strassen_products(packed, context);
  small_nets::expect_same(graph, result);
  return result;
}

int64_t products(const ir::Graph& graph) { return count(graph, "product_strassen"); }

/// A pointwise convolution from `in` to `out` channels beside `spare` other weights.
ir::Graph pointwise(int64_t in, int64_t out, int64_t side, int64_t batch = 1, int64_t spare = 200) {
  Net net;
  const ir::ValueId x = net.input({batch, in, side, side});
  const ir::ValueId y = net.conv(x, out, 1);
  return net.finish({y, net.dense(net.global_pool(y), spare)});
}

ir::Graph product(const Shape& x, int64_t columns) {
  Net net;
  const ir::ValueId rows = net.input(x);
  const ir::ValueId matrix = net.constant({x.back(), columns}, 0.1);
  const ir::ValueId sums = net.add("add", {net.add("matmul", {rows, matrix}), net.constant({columns}, 1)});
  return net.finish({net.add("relu", {sums})});
}

TEST(StrassenProducts, LongSumsOfManyRowsAreTakenInHalves) {
  EXPECT_EQ(products(chosen(pointwise(512, 512, 14))), 1);
  EXPECT_EQ(products(chosen(product({1, 196, 384}, 384))), 1);
  EXPECT_EQ(products(chosen(product({1, 14, 14, 384}, 384))), 1) << "rows of two axes";
  EXPECT_EQ(products(chosen(product({1, 15, 13, 384}, 384))), 1) << "an odd number of rows";
}

TEST(StrassenProducts, ShortSumsFewRowsAndRowsThatMayBeItemsStay) {
  EXPECT_EQ(products(chosen(pointwise(32, 256, 28))), 0) << "sums that take as long as the products";
  EXPECT_EQ(products(chosen(product({1, 8, 512}, 512))), 0) << "weights take longer than the arithmetic";
  EXPECT_EQ(products(chosen(product({196, 384}, 384))), 0) << "each row may be an item of a batch";
  EXPECT_EQ(products(chosen(product({1, 196, 384}, 392))), 0) << "columns that fill no blocks of two halves";
}

TEST(StrassenProducts, WhatIsExactlyZeroStaysSo) {
  // 250 channels fill 16 blocks of 16 lanes but for 6, which are zero, and which a later sum of lanes reads.
  const ir::Graph graph = chosen(pointwise(256, 250, 14));
  EXPECT_EQ(products(graph), 1);
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != "product_strassen") continue;
    EXPECT_EQ(node.attrs.int_of("columns"), 250);
  }
  EXPECT_EQ(products(chosen(pointwise(250, 256, 14))), 1) << "pad lanes of the input are multiplied by zeros";
}

TEST(StrassenProducts, AnItemIsPairedWithNoOther) {
  const ir::Graph graph = product({2, 128, 256}, 256);
  const ir::Graph halves = chosen(graph);
  ASSERT_EQ(products(halves), 1);
  std::vector<Tensor> inputs = small_nets::seeded_inputs(graph);
  const Tensor before = ir::evaluate_reference(halves, inputs)[0];
  Tensor other = inputs[0].clone();
  for (int64_t i = other.num_elements() / 2; i < other.num_elements(); ++i) other.set_element(i, NAN);
  const Tensor after = ir::evaluate_reference(halves, {other})[0];
  for (int64_t i = 0; i < before.num_elements() / 2; ++i)
    ASSERT_EQ(before.element_as_double(i), after.element_as_double(i)) << i;
}

TEST(StrassenProducts, EqualWeightsAreOneConstant) {
  Net net;
  const ir::ValueId x = net.input({1, 128, 256});
  const ir::ValueId matrix = net.constant({256, 256}, 0.05);
  const ir::ValueId y = net.add("relu", {net.add("matmul", {x, matrix})});
  const ir::Graph graph = chosen(net.finish({net.add("matmul", {y, matrix})}));
  EXPECT_EQ(products(graph), 2);
  int64_t factors = 0;
  for (const ir::Value& value : graph.values())
    factors += value.constant && value.type.shape.size() == 4 ? 1 : 0;
  EXPECT_EQ(factors, 1);
}

TEST(StrassenProducts, TheErrorIsMeasuredOnTheWeights) {
  Net net;
  const Tensor panels = net.graph.value(net.constant({8, 64, 16})).constant->clone();
  const Tensor factors = ops::strassen_weights(panels, 64, 16, 32);
  const double error = passes::strassen_error(panels, factors, 64, 16);
  EXPECT_GT(error, 1e-9);
  EXPECT_LT(error, 2e-6);
  Tensor wrong = factors.clone();
  wrong.set_element(0, wrong.element_as_double(0) + 1);
  EXPECT_GT(passes::strassen_error(panels, wrong, 64, 16), 1e-5);
  Tensor infinite = panels.clone();
  infinite.set_element(0, INFINITY);
  EXPECT_FALSE(passes::strassen_error(infinite, ops::strassen_weights(infinite, 64, 16, 32), 64, 16) <= 1e-5);
}

}  // namespace
}  // namespace tensormill::strassen_products_test
