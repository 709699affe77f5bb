/// What is elementwise of one byte becomes a lookup: which chains do, and that their bytes stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/passes/pass.h"
#include "tests/passes/quantized_net.h"
#include "tests/passes/small_nets.h"

namespace tensormill::byte_functions_test {
namespace {

using quantized_nets::all_bytes;
using quantized_nets::expect_same_bytes;
using small_nets::count;
using V = ir::ValueId;

struct Net : quantized_nets::Net {
  /// x / (1 + e^-x), of which the sigmoid is quantized as well.
  V swish(V q, DType to, V* sigmoid = nullptr) {
    const V real = dequantize(q, 3, 0.0625F);
    const V gate = quantize(add("sigmoid", {real}), to == DType::kInt8 ? -128 : 0, 1.0F / 256, to);
    if (sigmoid != nullptr) *sigmoid = gate;
    const V product = add("mul", {real, dequantize(gate, to == DType::kInt8 ? -128 : 0, 1.0F / 256)});
    return quantize(product, to == DType::kInt8 ? -120 : 8, 0.03125F, to);
  }
};

ir::Graph looked_up(const ir::Graph& graph, bool has_instruction = true) {
  passes::PassContext context;
  context.facts.byte_lookup = has_instruction;
  ir::Graph result = passes::byte_functions(graph, context);
  ir::verify(result);
  return result;
}

void expect_unchanged(const ir::Graph& graph) {
  const ir::Graph result = looked_up(graph);
  EXPECT_EQ(ir::print(result).find("lookup("), std::string::npos) << ir::print(result);
  EXPECT_EQ(result.nodes().size(), graph.nodes().size());
}

TEST(ByteFunctions, ASwishIsOneLookup) {
  for (const DType from : {DType::kInt8, DType::kUInt8}) {
    for (const DType to : {DType::kInt8, DType::kUInt8}) {
      Net net;
      const V x = net.graph.add_input("x", {from, {2, 128}});
      net.graph.set_outputs({net.swish(x, to)});
      const ir::Graph result = looked_up(net.graph);
      ASSERT_EQ(result.nodes().size(), 1U) << ir::print(result);
      EXPECT_EQ(result.nodes()[0].op, "lookup");
      // All nodes of the model that it stands for.
      const std::vector<std::string>& origins = result.nodes()[0].origins;
      EXPECT_EQ(std::count(origins.begin(), origins.end(), "sigmoid"), 1);
      expect_same_bytes(net.graph, result, all_bytes(from, {2, 128}));
    }
  }
}

TEST(ByteFunctions, WhatElseIsReadIsLookedUpOrStays) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, {256}});
  V sigmoid = ir::kAbsent;
  const V swish = net.swish(x, DType::kInt8, &sigmoid);
  net.graph.set_outputs({swish, sigmoid, net.add("reduce_max", {net.dequantize(sigmoid, -128, 1)})});
  const ir::Graph result = looked_up(net.graph);
  EXPECT_EQ(count(result, "lookup"), 2);
  EXPECT_EQ(count(result, "sigmoid"), 0);
  EXPECT_EQ(count(result, "round"), 0);
  expect_same_bytes(net.graph, result, all_bytes(DType::kInt8, {256}));
}

TEST(ByteFunctions, OfAnyExtents) {
  Net net;
  net.graph.set_symbols(std::make_shared<ir::SymbolTable>());
  const ir::SymShape shape{net.graph.symbols()->add("N", 4), 64};
  net.graph.set_outputs({net.swish(net.graph.add_input("x", {DType::kInt8, shape}), DType::kInt8)});
  const ir::Graph result = looked_up(net.graph);
  EXPECT_EQ(result.nodes().size(), 1U);
  expect_same_bytes(small_nets::at_hints(net.graph), small_nets::at_hints(result),
                    all_bytes(DType::kInt8, {4, 64}));
}

TEST(ByteFunctions, ShortChainsStay) {
  for (const bool is_long : {false, true}) {
    Net net;
    V value = net.add("cast", {net.graph.add_input("x", {DType::kInt8, {256}})}, {{"to", DType::kFloat32}});
    value = net.add("abs", {value});
    if (is_long) value = net.add("neg", {value});
    net.graph.set_outputs({net.add("cast", {value}, {{"to", DType::kUInt8}})});
    if (!is_long) {
      expect_unchanged(net.graph);
      continue;
    }
    const ir::Graph result = looked_up(net.graph);
    EXPECT_EQ(result.nodes().size(), 1U);
    expect_same_bytes(net.graph, result, all_bytes(DType::kInt8, {256}));
  }
}

TEST(ByteFunctions, LongChainsAreLookedUpInParts) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, {256}});
  V value = x;
  for (int i = 0; i < 20; ++i)
    value = net.quantize(net.dequantize(value, i % 3, 0.75F), -1, 0.7F, DType::kInt8);
  net.graph.set_outputs({value});
  const ir::Graph result = looked_up(net.graph);
  EXPECT_EQ(count(result, "lookup"), 2);
  EXPECT_EQ(result.nodes().size(), 2U);
  expect_same_bytes(net.graph, result, all_bytes(DType::kInt8, {256}));
}

TEST(ByteFunctions, OfTwoBytesStay) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, {8}}),
          y = net.graph.add_input("y", {DType::kInt8, {8}});
  const V product = net.add("mul", {net.dequantize(x, 3, 0.5F), net.dequantize(y, -7, 0.25F)});
  net.graph.set_outputs({net.quantize(product, 1, 0.5F, DType::kInt8)});
  expect_unchanged(net.graph);
}

TEST(ByteFunctions, OfWhatDiffersByPlaceStay) {
  Net factors;
  const V x = factors.graph.add_input("x", {DType::kInt8, {2}});
  const V scales = factors.constant(Tensor::from<float>({2}, std::vector<float>{0.5F, 2}));
  const V scaled = factors.add("mul", {factors.dequantize(x, 3, 0.5F), scales});
  factors.graph.set_outputs({factors.quantize(scaled, 1, 0.5F, DType::kInt8)});
  expect_unchanged(factors.graph);
  // Elements are repeated, or have one more dimension.
  for (const Shape& shape : {Shape{3, 1}, Shape{1, 1}}) {
    Net repeated;
    const V q = repeated.graph.add_input("x", {DType::kInt8, {5}});
    const V ones = repeated.constant(Tensor::zeros(DType::kFloat32, shape));
    const V sum = repeated.add("add", {repeated.dequantize(q, 3, 0.5F), ones});
    repeated.graph.set_outputs({repeated.quantize(sum, 1, 0.5F, DType::kInt8)});
    expect_unchanged(repeated.graph);
  }
}

TEST(ByteFunctions, WithoutTheInstructionNothingChanges) {
  Net net;
  net.graph.set_outputs({net.swish(net.graph.add_input("x", {DType::kInt8, {256}}), DType::kInt8)});
  EXPECT_EQ(ir::print(looked_up(net.graph, false)), ir::print(net.graph));
}

/// All scales are powers of two, so that float32 has the exact sums as well.
TEST(ByteFunctions, ConvolutionsReadTheUnsignedTable) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, {1, 16, 4, 4}});
  Tensor weights(DType::kInt8, {16, 16, 1, 1}), scales(DType::kFloat32, {16, 1, 1, 1});
  for (int64_t i = 0; i < weights.num_elements(); ++i) weights.set_element_int(i, i * 37 % 255 - 127);
  for (int64_t i = 0; i < 16; ++i) scales.set_element(i, std::ldexp(1.0, static_cast<int>(i % 3) - 6));
  const V wide = net.add("cast", {net.constant(weights)}, {{"to", DType::kFloat32}});
  const V w = net.add("mul", {net.add("sub", {wide, net.number(0)}), net.constant(scales)});
  const V swish = net.swish(x, DType::kInt8);
  const V sums = net.add("conv", {net.dequantize(swish, -120, 0.03125F), w});
  net.graph.set_outputs({net.quantize(sums, 2, 4, DType::kInt8)});
  passes::PassContext context;
  context.facts.vector_bits = 256;
  context.facts.dot4 = true;
  const ir::Graph result = passes::integer_products(looked_up(net.graph), context);
  ir::verify(result);
  EXPECT_EQ(count(result, "conv_integer"), 1);
  EXPECT_EQ(count(result, "is_nan"), 0);
  ASSERT_EQ(count(result, "lookup"), 1);
  for (const ir::Node& node : result.nodes()) {
    if (node.op != "lookup") continue;
    EXPECT_EQ(node.attrs.dtype_of("to"), DType::kUInt8);
  }
  expect_same_bytes(net.graph, result, all_bytes(DType::kInt8, {1, 16, 4, 4}));
}

}  // namespace
}  // namespace tensormill::byte_functions_test
