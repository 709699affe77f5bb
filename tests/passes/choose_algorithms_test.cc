/// The choice of algorithms: faster forms where they pay and are accurate, the direct one elsewhere, and the
/// same answers.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/bind_symbols.h"
#include "compiler/ops/windows/winograd.h"
#include "compiler/passes/convolutions/winograd_error.h"
#include "compiler/passes/pass.h"
#include "compiler/target/target.h"
#include "tests/passes/small_nets.h"

namespace tensormill::choose_algorithms_test {
namespace {

using small_nets::count;
using small_nets::Net;

passes::PassContext context_of(int bits) {
  passes::PassContext context;
  context.facts = {bits, bits == 512 ? 32 : 16, true, false, false, false, 48 * 1024, 2048 * 1024, 2};
  return context;
}

ir::Graph chosen(const ir::Graph& graph, int bits = 512) {
  const ir::Graph blocked = passes::alter_layout(graph, context_of(bits));
  ir::Graph result = passes::choose_algorithms(blocked, context_of(bits));
  small_nets::expect_same(graph, result);
  return result;
}

int64_t tile_of_first(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == "conv_winograd") return node.attrs.int_of("tile");
  }
  return 0;
}

/// One convolution beside `spare` other weights.
ir::Graph one_layer(int64_t channels, int64_t side, int64_t kernel, int64_t stride, int64_t spare) {
  Net net;
  const ir::ValueId x = net.input({1, channels, side, side});
  const ir::ValueId y = net.conv(x, channels, kernel, stride);
  return net.finish({y, net.dense(net.global_pool(y), spare)});
}

TEST(ChooseAlgorithms, LargeImagesAreFilteredByTiles) {
  for (int bits : {128, 256, 512}) {
    const ir::Graph graph = chosen(one_layer(32, 28, 3, 1, 2000), bits);
    EXPECT_EQ(count(graph, "conv_winograd"), 1);
    EXPECT_EQ(count(graph, "conv_blocked"), 0);
    EXPECT_EQ(tile_of_first(graph), 4);
  }
}

/// The deeper layer of a free image has as many tiles as images that are large give it: the choice is that of
/// large images, and nothing is assumed of any.
TEST(ChooseAlgorithms, ImagesOfAnySizeAreFilteredByTiles) {
  const ir::Graph graph = passes::alter_layout(small_nets::residual_net_of(true), context_of(512));
  const size_t guards = graph.symbols()->guards().size();
  const ir::Graph result = passes::choose_algorithms(graph, context_of(512));
  EXPECT_GT(count(result, "conv_winograd"), 0);
  EXPECT_EQ(result.symbols()->guards().size(), guards);
  for (const std::map<std::string, int64_t>& size :
       {std::map<std::string, int64_t>{{"N", 1}, {"H", 24}, {"W", 24}}, {{"N", 2}, {"H", 33}, {"W", 17}}})
    small_nets::expect_same(ir::bind_symbols(graph, size), ir::bind_symbols(result, size));
}

/// A volume's convolution, of `planes` planes of 3x3, beside other weights.
ir::Graph volume(int64_t planes, bool padded) {
  Net net;
  const ir::ValueId x = net.input({2, 32, 5, 16, 16});
  const ir::Attrs attrs{{"pads", padded ? Shape{1, 1, 1, 0, 1, 1} : Shape(6, 0)}};
  const ir::ValueId y =
      net.add("conv", {x, net.constant({32, 32, planes, 3, 3}, 0.1), net.constant({32}, 0.5)}, attrs);
  const ir::ValueId mean = net.add("reduce_mean", {y}, {{"axes", Shape{2, 3, 4}}, {"keepdims", int64_t{1}}});
  return net.finish({y, net.dense(mean, 6000)});
}

TEST(ChooseAlgorithms, PlanesOfVolumesAreFilteredAsImages) {
  for (const int64_t planes : {1, 2, 3}) {
    for (const bool padded : {false, true}) {
      const ir::Graph graph = chosen(volume(planes, padded));
      EXPECT_EQ(count(graph, "conv_winograd"), 1) << planes;
      EXPECT_EQ(count(graph, "conv_blocked"), 0) << planes;
    }
  }
}

/// The tiles that a target's CPU gets for the 3x3 layers of ResNet-50 of 14² and 7².
std::vector<int64_t> tiles_on(const std::string& cpu) {
  passes::PassContext context;
  context.facts = target::parse_target("llvm -mcpu=" + cpu, {}).facts;
  std::vector<int64_t> tiles;
  for (const auto& [channels, side] : {std::pair<int64_t, int64_t>{256, 14}, {512, 7}}) {
    const ir::Graph blocked = passes::alter_layout(one_layer(channels, side, 3, 1, 14000), context);
    tiles.push_back(tile_of_first(passes::choose_algorithms(blocked, context)));
  }
  return tiles;
}

TEST(ChooseAlgorithms, ProductsACycleDecideOnSmallImages) {
  EXPECT_EQ(tiles_on("sapphirerapids"), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(tiles_on("znver4"), (std::vector<int64_t>{4, 2})) << "one multiply-add of 512 bits a cycle";
}

TEST(ChooseAlgorithms, OtherKernelsAndStridesStayDirect) {
  EXPECT_EQ(count(chosen(one_layer(32, 28, 1, 1, 2000)), "conv_winograd"), 0);
  EXPECT_EQ(count(chosen(one_layer(32, 28, 3, 2, 2000)), "conv_winograd"), 0);
  EXPECT_EQ(count(chosen(one_layer(32, 28, 5, 1, 2000)), "conv_winograd"), 0);
}

TEST(ChooseAlgorithms, WeightsGrowWithinABudget) {
  const ir::Graph graph = chosen(one_layer(32, 28, 3, 1, 1));
  EXPECT_EQ(tile_of_first(graph), 2) << "F(4,3) would have four times the model's weights";
}

TEST(ChooseAlgorithms, ResidualNetsGiveTheSameAnswers) {
  const ir::Graph graph = chosen(small_nets::residual_net());
  EXPECT_EQ(count(graph, "conv"), 0);
}

TEST(ChooseAlgorithms, TheErrorIsMeasuredOnTheWeights) {
  Net net;
  const Tensor weights = net.graph.value(net.constant({2, 3, 3, 3, 16, 16})).constant->clone();
  for (int64_t tile : {2, 4}) {
    for (int64_t group : {1, 2}) {
      const Tensor transformed = ops::winograd_weights(weights, tile, group);
      const double error = passes::winograd_error(weights, transformed, tile);
      EXPECT_GT(error, 1e-8);
      EXPECT_LT(error, 5e-6);
      Tensor wrong = transformed.clone();
      wrong.set_element(5, wrong.element_as_double(5) + 1);
      EXPECT_GT(passes::winograd_error(weights, wrong, tile), 1e-5);
    }
  }
  Tensor infinite = weights.clone();
  infinite.set_element(0, INFINITY);
  EXPECT_FALSE(passes::winograd_error(infinite, ops::winograd_weights(infinite, 4, 1), 4) <= 1e-5);
}

TEST(ChooseAlgorithms, OptionsTakeThePlaceOfTheRule) {
  const ir::Graph graph = one_layer(32, 28, 3, 1, 2000);
  const auto tile_with = [&](const passes::AlgorithmOptions& options, std::string* chosen_by = nullptr) {
    passes::PassContext context = context_of(512);
    context.algorithms = options;
    const ir::Graph result = passes::choose_algorithms(passes::alter_layout(graph, context_of(512)), context);
    for (const ir::Node& node : result.nodes()) {
      if (chosen_by != nullptr && node.attrs.has("layer")) *chosen_by = node.attrs.string_of("chosen_by");
    }
    return tile_of_first(result);
  };
  for (const int64_t tile : {0, 2, 4}) {
    EXPECT_EQ(tile_with({.everywhere = tile}), tile);
    std::string chosen_by;
    EXPECT_EQ(tile_with({.mark = true, .instead = {{0, {{4, tile}}}}}, &chosen_by), tile);
    EXPECT_EQ(chosen_by, "records");
    EXPECT_EQ(tile_with({.mark = true, .instead = {{0, {{2, tile}}}}}, &chosen_by), 4) << "of another choice";
    EXPECT_EQ(chosen_by, "rule");
  }
}

TEST(ChooseAlgorithms, WhatWasMeasuredKeepsTheBudget) {
  const ir::Graph blocked = passes::alter_layout(one_layer(32, 28, 3, 1, 1), context_of(512));
  passes::PassContext context = context_of(512);
  context.algorithms.instead = {{0, {{2, 4}}}};
  EXPECT_EQ(tile_of_first(passes::choose_algorithms(blocked, context)), 2);
  context.algorithms.instead = {{0, {{2, 0}}}};
  EXPECT_EQ(tile_of_first(passes::choose_algorithms(blocked, context)), 0);
}

TEST(ChooseAlgorithms, RunsFromLevelThreeAndCanBeDisabled) {
  const ir::Graph graph = one_layer(32, 28, 3, 1, 2000);
  passes::PipelineOptions options;
  options.context = context_of(512);
  std::vector<std::string> ran;
  const auto fused_winograd = [&] {
    int64_t found = 0;
    const ir::Graph result = passes::run_pipeline(graph, options, ran);
    for (const ir::Node& node : result.nodes()) {
      found +=
          node.op == "conv_winograd" || (node.region && count(*node.region, "conv_winograd") > 0) ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(fused_winograd(), 1);
  options.disabled = {"choose_algorithms"};
  EXPECT_EQ(fused_winograd(), 0);
  options = {};
  options.context = context_of(512);
  options.context.opt_level = 2;
  EXPECT_EQ(fused_winograd(), 0);
}

}  // namespace
}  // namespace tensormill::choose_algorithms_test
