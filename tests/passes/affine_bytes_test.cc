/// What is elementwise of one byte and of constants by channel becomes a product, a sum and a rounding: which
/// chains do, and that all their bytes stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "compiler/passes/pass.h"
#include "tests/passes/quantized_net.h"
#include "tests/passes/small_nets.h"

namespace tensormill::affine_bytes_test {
namespace {

using quantized_nets::all_bytes;
using quantized_nets::expect_same_bytes;
using small_nets::count;
using V = ir::ValueId;

constexpr int64_t kChannels = 5;

/// [N,C,H,W] or [N,H,W,C], whose every channel has every byte.
struct Place {
  Shape data;
  Shape constants;
};
const Place kFirst{{1, kChannels, 16, 16}, {1, kChannels, 1, 1}};
const Place kLast{{1, 16, 16, kChannels}, {kChannels}};

Tensor bytes_of(DType dtype, const Place& place) {
  Tensor x(dtype, place.data);
  const bool is_first = place.data[1] == kChannels;
  for (int64_t i = 0; i < x.num_elements(); ++i)
    static_cast<uint8_t*>(x.data())[i] = static_cast<uint8_t>(is_first ? i : i / kChannels);
  return x;
}

struct Net : quantized_nets::Net {
  V by_channel(const Place& place, const std::vector<float>& values) {
    return constant(Tensor::from<float>(place.constants, values));
  }
  /// A normalization of dequantized values that could not be folded, with its activation.
  V scaled(V q, const Place& place, const std::vector<float>& factors, const std::vector<float>& shifts) {
    const V product = add("mul", {dequantize(q, 3, 0.0371F), by_channel(place, factors)});
    return add("relu", {add("add", {product, by_channel(place, shifts)})});
  }
};

const std::vector<float> kFactors{0.731F, -1.377F, 0, 3.9F, 0.0113F};
const std::vector<float> kShifts{-0.31F, 0.77F, 1.5F, -2.125F, 0.02F};

ir::Graph made_affine(const ir::Graph& graph) {
  const passes::PassContext context;
  const ir::Graph folded = passes::fold_constants(graph, context);
  ir::Graph result = passes::affine_bytes(folded, context);
  ir::verify(result);
  return result;
}

/// No node beside the constants was changed.
void expect_unchanged(const ir::Graph& graph) {
  const ir::Graph folded = passes::fold_constants(graph, {});
  EXPECT_EQ(ir::print(passes::affine_bytes(folded, {})), ir::print(folded));
}

TEST(AffineBytes, ANormalizationIsOneProductAndOneSum) {
  for (const DType from : {DType::kInt8, DType::kUInt8}) {
    for (const DType to : {DType::kInt8, DType::kUInt8}) {
      for (const Place& place : {kFirst, kLast}) {
        Net net;
        const V x = net.graph.add_input("x", {from, place.data});
        const int64_t zero = to == DType::kInt8 ? -128 : 0;
        net.graph.set_outputs({net.quantize(net.scaled(x, place, kFactors, kShifts), zero, 0.0293F, to)});
        const ir::Graph result = made_affine(net.graph);
        SCOPED_TRACE(ir::print(result));
        ASSERT_EQ(result.nodes().size(), 5U);
        for (const char* op : {"mul", "add", "round"}) EXPECT_EQ(count(result, op), 1) << op;
        EXPECT_EQ(count(result, "cast"), 2);
        const std::vector<std::string>& origins = result.nodes()[0].origins;
        EXPECT_EQ(std::count(origins.begin(), origins.end(), "relu"), 1);
        expect_same_bytes(net.graph, result, bytes_of(from, place));
      }
    }
  }
}

/// The relu's limit is no limit of the byte.
TEST(AffineBytes, LimitsInsideOfTheByteStay) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, kFirst.data});
  const V limited = net.add("clip", {net.scaled(x, kFirst, kFactors, kShifts)}, {{"max", 2.5}});
  net.graph.set_outputs({net.quantize(limited, -20, 0.0293F, DType::kInt8)});
  const ir::Graph result = made_affine(net.graph);
  EXPECT_EQ(count(result, "div"), 0) << ir::print(result);
  EXPECT_EQ(count(result, "clip"), 1);
  expect_same_bytes(net.graph, result, bytes_of(DType::kInt8, kFirst));
}

/// Products of powers of two lie in the middle between two bytes again and again. An odd zero point turns the
/// even neighbours of a tie into odd ones.
TEST(AffineBytes, TiesGoToTheSameBytes) {
  for (const int64_t zero : {-128, -1, 0, 7}) {
    for (const DType from : {DType::kInt8, DType::kUInt8}) {
      Net net;
      const V x = net.graph.add_input("x", {from, kFirst.data});
      const V scaled =
          net.add("mul", {net.dequantize(x, 4, 0.5F), net.by_channel(kFirst, {1, 0.5F, -1, 2, 0.25F})});
      const V moved = net.add("add", {scaled, net.by_channel(kFirst, {0, 1, 2, -4, 8})});
      net.graph.set_outputs({net.quantize(moved, zero, 1, DType::kInt8)});
      const ir::Graph result = made_affine(net.graph);
      SCOPED_TRACE(ir::print(result));
      EXPECT_EQ(count(result, "div"), 0);
      EXPECT_EQ(count(result, "add"), zero % 2 == 0 ? 1 : 2);
      expect_same_bytes(net.graph, result, bytes_of(from, kFirst));
    }
  }
}

/// As TensorFlow Lite writes a normalization: the product is quantized, and then the sum is. No byte is made
/// in between, unless something else reads it.
TEST(AffineBytes, ChainsBehindEachOtherPassRoundedValues) {
  for (const bool is_read : {false, true}) {
    Net net;
    const V x = net.graph.add_input("x", {DType::kInt8, kFirst.data});
    const V product = net.add("mul", {net.dequantize(x, 3, 0.0371F), net.by_channel(kFirst, kFactors)});
    const V between = net.quantize(product, -11, 0.0411F, DType::kInt8);
    const V sum = net.add("add", {net.dequantize(between, -11, 0.0411F), net.by_channel(kFirst, kShifts)});
    const V result = net.quantize(net.add("relu", {sum}), -128, 0.0293F, DType::kInt8);
    std::vector<V> outputs{result};
    if (is_read) outputs.push_back(between);
    net.graph.set_outputs(outputs);
    const ir::Graph after = made_affine(net.graph);
    SCOPED_TRACE(ir::print(after));
    EXPECT_EQ(count(after, "div"), 0);
    EXPECT_EQ(count(after, "round"), 2);
    EXPECT_EQ(count(after, "cast"), is_read ? 4 : 2);
    // What became more than a byte holds was limited by the conversion.
    EXPECT_EQ(count(after, "clip"), is_read ? 0 : 1);
    expect_same_bytes(net.graph, after, bytes_of(DType::kInt8, kFirst));
  }
}

TEST(AffineBytes, OfOneScaleForAll) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, {256}});
  net.graph.set_outputs({net.quantize(net.dequantize(x, 3, 0.0371F), 5, 0.0411F, DType::kUInt8)});
  const ir::Graph result = made_affine(net.graph);
  EXPECT_EQ(result.nodes().size(), 5U) << ir::print(result);
  expect_same_bytes(net.graph, result, all_bytes(DType::kInt8, {256}));
}

TEST(AffineBytes, OtherExtentsMayBeFree) {
  for (const bool is_channel_free : {false, true}) {
    Net net;
    net.graph.set_symbols(std::make_shared<ir::SymbolTable>());
    const ir::SymInt n = net.graph.symbols()->add("N", is_channel_free ? kChannels : 2);
    const ir::SymShape shape =
        is_channel_free ? ir::SymShape{2, n, 16, 16} : ir::SymShape{n, kChannels, 16, 16};
    const V x = net.graph.add_input("x", {DType::kInt8, shape});
    // With a free number of channels, constants of one channel go along another axis.
    const Place along = is_channel_free ? Place{{}, {16}} : kFirst;
    std::vector<float> factors = kFactors;
    if (is_channel_free) factors.resize(16, 0.5F);
    const V scaled = net.add("mul", {net.dequantize(x, 3, 0.0371F), net.by_channel(along, factors)});
    net.graph.set_outputs({net.quantize(scaled, 1, 0.0293F, DType::kInt8)});
    const ir::Graph result = made_affine(net.graph);
    EXPECT_EQ(count(result, "div"), 0) << ir::print(result);
    expect_same_bytes(small_nets::at_hints(net.graph), small_nets::at_hints(result),
                      bytes_of(DType::kInt8, {{2, kChannels, 16, 16}, {}}));
  }
}

TEST(AffineBytes, FreeChannelsStay) {
  Net net;
  net.graph.set_symbols(std::make_shared<ir::SymbolTable>());
  const ir::SymInt free = net.graph.symbols()->add("C", kChannels);
  const V x = net.graph.add_input("x", {DType::kInt8, ir::SymShape{1, free, 16, 16}});
  const V scaled = net.add("mul", {net.dequantize(x, 3, 0.0371F), net.by_channel(kFirst, kFactors)});
  net.graph.set_outputs({net.quantize(scaled, 1, 0.0293F, DType::kInt8)});
  const ir::Graph folded = passes::fold_constants(net.graph, {});
  // The constants say how many channels there are, which is a guard: then the extent is no number yet.
  EXPECT_EQ(count(passes::affine_bytes(folded, {}), "div"), 1);
}

TEST(AffineBytes, OtherFunctionsStay) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, kFirst.data});
  const V gate =
      net.add("sigmoid", {net.add("mul", {net.dequantize(x, 3, 0.0371F), net.by_channel(kFirst, kFactors)})});
  net.graph.set_outputs({net.quantize(gate, -128, 1.0F / 256, DType::kInt8)});
  expect_unchanged(net.graph);
}

/// Each channel has its own limit.
TEST(AffineBytes, LimitsThatDifferByChannelStay) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, kFirst.data});
  const V limited =
      net.add("max", {net.dequantize(x, 3, 0.0371F), net.by_channel(kFirst, {-3, -1, 0, 1, 2})});
  net.graph.set_outputs({net.quantize(limited, 0, 0.0293F, DType::kInt8)});
  expect_unchanged(net.graph);
}

TEST(AffineBytes, WhatIsNoNumberStays) {
  for (const float special :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Net net;
    const V x = net.graph.add_input("x", {DType::kInt8, kFirst.data});
    std::vector<float> shifts = kShifts;
    shifts[2] = special;
    net.graph.set_outputs({net.quantize(net.scaled(x, kFirst, kFactors, shifts), 0, 0.0293F, DType::kInt8)});
    expect_unchanged(net.graph);
  }
}

TEST(AffineBytes, WhatElseIsReadIsComputedOnce) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, kFirst.data});
  const V rounded =
      net.add("round", {net.add("div", {net.scaled(x, kFirst, kFactors, kShifts), net.number(0.0293F)})});
  const V byte = net.add("cast", {rounded}, {{"to", DType::kInt8}});
  net.graph.set_outputs({byte, net.add("reduce_max", {rounded})});
  expect_unchanged(net.graph);
}

TEST(AffineBytes, ShortChainsStay) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, kFirst.data});
  const V wide = net.add("cast", {x}, {{"to", DType::kFloat32}});
  const V product = net.add("mul", {wide, net.by_channel(kFirst, kFactors)});
  const V sum = net.add("add", {product, net.by_channel(kFirst, kShifts)});
  net.graph.set_outputs({net.add("cast", {net.add("round", {sum})}, {{"to", DType::kInt8}})});
  expect_unchanged(net.graph);
}

/// What it makes is no chain that it would change again.
TEST(AffineBytes, OnceIsEnough) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, kLast.data});
  net.graph.set_outputs({net.quantize(net.scaled(x, kLast, kFactors, kShifts), -20, 0.0293F, DType::kInt8)});
  expect_unchanged(made_affine(net.graph));
}

TEST(AffineBytes, OfConstantsAlongTwoAxesStay) {
  Net net;
  const V x = net.graph.add_input("x", {DType::kInt8, {1, kChannels, 16, kChannels}});
  const V scaled = net.scaled(x, kFirst, kFactors, kShifts);
  const V product = net.add("mul", {scaled, net.by_channel(kLast, kFactors)});
  net.graph.set_outputs({net.quantize(product, 0, 0.0293F, DType::kInt8)});
  expect_unchanged(net.graph);
}

}  // namespace
}  // namespace tensormill::affine_bytes_test
