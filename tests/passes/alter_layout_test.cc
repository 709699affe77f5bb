/// Blocked layouts: the same answers, weights packed, and transforms only where plain tensors are wanted.
#include <gtest/gtest.h>

#include <functional>

#include "compiler/ir/bind_symbols.h"
#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::count;
using small_nets::Net;

passes::PassContext context_of(int bits) {
  passes::PassContext context;
  context.facts.vector_bits = bits;
  return context;
}

/// alter_layout alone, for vectors of `bits`, checked against the graph it came from.
ir::Graph altered(const ir::Graph& graph, int bits = 512) {
  ir::Graph result = passes::alter_layout(graph, context_of(bits));
  small_nets::expect_same(graph, result);
  return result;
}

int64_t transforms(const ir::Graph& graph) {
  return count(graph, "to_blocked") + count(graph, "from_blocked") + count(graph, "transpose");
}

TEST(AlterLayout, ResidualNetsHaveNoTransforms) {
  const ir::Graph graph = altered(small_nets::residual_net());
  EXPECT_EQ(count(graph, "conv"), 0);
  EXPECT_EQ(count(graph, "conv_first"), 1);
  EXPECT_EQ(count(graph, "conv_blocked"), 11);
  EXPECT_EQ(transforms(graph), 0);
  EXPECT_EQ(count(graph, "gather_channels"), 0);
}

TEST(AlterLayout, MobileNetsHaveNoTransforms) {
  const ir::Graph graph = altered(small_nets::mobile_net());
  EXPECT_EQ(count(graph, "conv"), 0);
  EXPECT_EQ(count(graph, "conv_depthwise"), 2);
  EXPECT_EQ(count(graph, "where"), 0);
  EXPECT_EQ(transforms(graph), 0);
}

TEST(AlterLayout, SqueezeNetsTransformOnlyBeforeTheSoftmax) {
  const ir::Graph graph = altered(small_nets::squeeze_net());
  EXPECT_EQ(count(graph, "conv"), 0);
  EXPECT_EQ(count(graph, "concat"), 2);
  EXPECT_EQ(transforms(graph), 1);
}

TEST(AlterLayout, ShufflesOfChannelsBecomeOneCopyBeforeEachReader) {
  const ir::Graph graph = altered(small_nets::shuffle_net());
  EXPECT_EQ(count(graph, "conv"), 0);
  EXPECT_EQ(count(graph, "reshape"), 1);
  EXPECT_EQ(count(graph, "split"), 0);
  EXPECT_EQ(transforms(graph), 1) << "the flattened 40 channels";
  EXPECT_EQ(count(graph, "gather_channels"), 4);
}

/// Of any batch and image as of those of one size, and nothing is assumed of them.
TEST(AlterLayout, ImagesOfAnySizeAreBlockedAsOthersAre) {
  using MakeNet = ir::Graph (*)(bool is_free);
  for (const MakeNet make :
       {&small_nets::residual_net_of, &small_nets::mobile_net_of, &small_nets::shuffle_net_of}) {
    const ir::Graph graph = make(true), fixed = altered(make(false));
    const size_t guards = graph.symbols()->guards().size();
    const ir::Graph result = passes::alter_layout(graph, context_of(512));
    EXPECT_EQ(result.symbols()->guards().size(), guards);
    for (const char* op : {"conv", "conv_first", "conv_blocked", "conv_depthwise", "to_blocked",
                           "from_blocked", "gather_channels", "where"})
      EXPECT_EQ(count(result, op), count(fixed, op)) << op;
    for (const std::map<std::string, int64_t>& size :
         {std::map<std::string, int64_t>{{"N", 1}, {"H", 24}, {"W", 24}}, {{"N", 2}, {"H", 33}, {"W", 17}}})
      small_nets::expect_same(ir::bind_symbols(graph, size), ir::bind_symbols(result, size));
  }
}

/// Runs `body` on 13 channels out of a convolution, six rows of five: three lanes of a block of 16 are pads.
ir::Graph on_image(const std::function<ir::ValueId(Net&, ir::ValueId)>& body) {
  Net net;
  const ir::ValueId x = net.conv(net.input({2, 16, 6, 5}), 13, 3);
  const ir::ValueId y = body(net, x);
  return altered(net.finish({net.conv(y, 5, 3)}));
}

TEST(AlterLayout, MovesOfPixelsKeepBlocks) {
  const auto expect_blocks = [](const std::string& op, ir::Attrs attrs, std::vector<int64_t> indices = {}) {
    const ir::Graph graph = on_image([&](Net& net, ir::ValueId x) {
      std::vector<ir::ValueId> inputs = {x};
      if (!indices.empty()) {
        const Shape shape = {static_cast<int64_t>(indices.size())};
        inputs.push_back(net.graph.add_constant("rows", Tensor::from<int64_t>(shape, indices)));
      }
      return net.add(op, inputs, attrs);
    });
    EXPECT_EQ(transforms(graph), 2) << op << ": in and out";
    EXPECT_EQ(count(graph, "where"), 0) << op;
  };
  expect_blocks("gather", {{"axis", int64_t{2}}}, {0, 0, 1, 5, -1});
  expect_blocks("gather", {{"axis", int64_t{-1}}}, {4, 4, 0});
  expect_blocks(
      "slice",
      {{"starts", Shape{0, 0, 1, 4}}, {"extents", Shape{2, 13, 3, 5}}, {"steps", Shape{1, 1, 2, -1}}});
  expect_blocks(
      "slice", {{"starts", Shape{0, 2, 0, 1}}, {"extents", Shape{2, 9, 6, 3}}, {"steps", Shape{1, 1, 1, 1}}});
  expect_blocks("pad", {{"pads", Shape{0, 0, 1, 2, 0, 0, 0, 3}}});
  expect_blocks("pad", {{"pads", Shape{0, 0, 1, 2, 0, 0, 0, 3}}, {"mode", std::string("reflect")}});
  expect_blocks("pad", {{"pads", Shape{0, 0, -1, 1, 0, 0, 2, -1}}, {"mode", std::string("edge")}});
}

TEST(AlterLayout, PadsOfANumberAreTakenOnPlainTensors) {
  const ir::Graph graph = on_image([](Net& net, ir::ValueId x) {
    return net.add("pad", {x}, {{"pads", Shape{0, 0, 1, 1, 0, 0, 1, 1}}, {"value", 2.0}});
  });
  EXPECT_EQ(transforms(graph), 3) << "in, out of blocks for the pad, out";
}

TEST(AlterLayout, FewChannelsAreReadOutOfTheirBlocks) {
  const auto read = [](int64_t channels, int64_t taps) {
    Net net;
    const ir::ValueId x = net.conv_relu(net.input({1, 3, 9, 8}), channels, 3);
    return altered(net.finish({net.conv(x, 20, taps)}));
  };
  const ir::Graph few = read(4, 3);
  EXPECT_EQ(count(few, "conv_first"), 2);
  EXPECT_EQ(transforms(few), 2) << "between both, and out";
  EXPECT_EQ(count(read(5, 3), "conv_blocked"), 1);
  EXPECT_EQ(count(read(4, 1), "conv_blocked"), 1) << "one tap leaves pad lanes out";
  // Of blocks of eight a quarter are two.
  const auto of_eight = [](int64_t channels) {
    Net net;
    const ir::ValueId x = net.conv_relu(net.input({1, 3, 9, 8}), channels, 3);
    return count(altered(net.finish({net.conv(x, 20, 3)}), 256), "conv_blocked");
  };
  EXPECT_EQ(of_eight(2), 0);
  EXPECT_EQ(of_eight(3), 1);
}

class Lanes : public testing::TestWithParam<int> {};

TEST_P(Lanes, EveryNetGivesTheSameAnswers) {
  for (const auto make :
       {small_nets::residual_net, small_nets::mobile_net, small_nets::squeeze_net, small_nets::shuffle_net}) {
    EXPECT_EQ(count(altered(make(), GetParam()), "conv"), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Lanes, testing::Values(128, 256, 512));

TEST(AlterLayout, PadLanesStayZeroWithoutAMaskWhereTheyCan) {
  const auto plain = [](Net& net, ir::ValueId x) {
    const ir::ValueId scaled = net.add("mul", {x, net.constant({13, 1, 1})});
    const ir::ValueId shifted = net.add("add", {net.constant({1, 13, 1, 1}), scaled});
    return net.add("hard_swish", {net.add("div", {shifted, net.constant({13, 1, 1})})});
  };
  const ir::Graph graph = on_image(plain);
  EXPECT_EQ(count(graph, "where"), 0);
  EXPECT_EQ(transforms(graph), 1 + 1) << "in and out";
}

TEST(AlterLayout, PadLanesAreMaskedBehindWhatMovesZero) {
  EXPECT_EQ(count(on_image([](Net& net, ir::ValueId x) { return net.add("sigmoid", {x}); }), "where"), 1);
  EXPECT_EQ(count(on_image([](Net& net, ir::ValueId x) {
                    return net.add("add", {x, net.constant({}, 2.0)});
                  }),
                  "where"),
            1);
  EXPECT_EQ(count(on_image([](Net& net, ir::ValueId x) {
                    return net.add("add", {x, net.constant({6, 5})});
                  }),
                  "where"),
            1);
}

TEST(AlterLayout, GatesOfOnePixelBroadcast) {
  const ir::Graph graph = on_image([](Net& net, ir::ValueId x) {
    const ir::ValueId narrow = net.conv_relu(net.global_pool(x), 4, 1);
    return net.add("mul", {x, net.add("hard_sigmoid", {net.conv(narrow, 13, 1)})});
  });
  EXPECT_EQ(transforms(graph), 2);
}

TEST(AlterLayout, PlainOperandsComeInOnce) {
  Net net;
  const ir::ValueId side = net.input({1, 20, 6, 6});
  const ir::ValueId x = net.add("add", {net.conv(net.input({1, 16, 6, 6}), 20, 1), side});
  const ir::Graph graph = altered(net.finish({net.add("sub", {net.conv(x, 20, 3), side})}));
  EXPECT_EQ(count(graph, "to_blocked"), 2);
  EXPECT_EQ(count(graph, "from_blocked"), 1);
}

TEST(AlterLayout, PlainReadersGetPlainTensors) {
  Net net;
  const ir::ValueId x = net.conv(net.input({1, 5, 6, 7}), 20, 3);
  const ir::ValueId rows = net.add("softmax", {x}, {{"axis", int64_t{3}}});
  const ir::ValueId flat = net.add("reshape", {x}, {{"shape", Shape{20, 42}}});
  const ir::ValueId part =
      net.add("slice", {x}, {{"starts", Shape{0, 3, 1, 0}}, {"extents", Shape{1, 9, 4, 7}}});
  const ir::Graph graph = altered(net.finish({rows, flat, part, net.conv(x, 7, 3)}));
  EXPECT_EQ(count(graph, "conv"), 0);
  EXPECT_EQ(count(graph, "from_blocked"), 3) << "one for two readers, one for each output in blocks";
}

TEST(AlterLayout, ChannelMovesOfEveryKindAreLists) {
  const ir::Graph graph = on_image([](Net& net, ir::ValueId x) {
    const ir::ValueId odd = net.add(
        "slice", {x},
        {{"starts", Shape{0, 1, 0, 0}}, {"extents", Shape{2, 6, 6, 5}}, {"steps", Shape{1, 2, 1, 1}}});
    const std::vector<int64_t> order = {12, -13, 3, 3};
    const ir::ValueId indices = net.graph.add_constant("order", Tensor::from<int64_t>({4}, order));
    const ir::ValueId chosen = net.add("gather", {x, indices}, {{"axis", int64_t{1}}});
    return net.add("concat", {odd, chosen}, {{"axis", int64_t{1}}});
  });
  EXPECT_EQ(count(graph, "gather_channels"), 1);
  EXPECT_EQ(count(graph, "gather") + count(graph, "slice") + count(graph, "concat"), 0);
}

TEST(AlterLayout, WholeBlocksAreSlicesNotGathers) {
  Net net;
  const ir::ValueId x = net.conv(net.input({1, 3, 6, 6}), 64, 3);
  const std::vector<ir::ValueId> halves = net.split_in_two(x);
  const ir::ValueId swapped = net.add("concat", {halves[1], halves[0]}, {{"axis", int64_t{1}}});
  const ir::Graph graph = altered(net.finish({net.add("relu", {swapped}), net.conv(halves[1], 8, 1)}));
  EXPECT_EQ(count(graph, "gather_channels"), 0);
  EXPECT_GE(count(graph, "slice"), 1);
}

TEST(AlterLayout, GroupsThatFillBlocksTogetherAreJoinedOthersStayPlain) {
  Net whole;
  const ir::ValueId x = whole.conv_relu(whole.input({1, 3, 6, 6}), 64, 3);
  EXPECT_EQ(count(altered(whole.finish({whole.conv(x, 32, 3, 1, 2)})), "conv_blocked"), 1);
  Net narrow;
  const ir::ValueId y = narrow.conv_relu(narrow.input({1, 3, 6, 6}), 24, 3);
  const ir::Graph joined = altered(narrow.finish({narrow.conv(y, 24, 3, 1, 3)}));
  EXPECT_EQ(count(joined, "conv"), 0) << "three groups of eight: one block and a half";
  for (const ir::Node& node : joined.nodes()) {
    if (node.op == "conv_blocked") {
      EXPECT_EQ(node.attrs.int_of("group"), 2);
    }
  }
  Net thin;
  const ir::ValueId z = thin.conv_relu(thin.input({1, 3, 6, 6}), 64, 3);
  EXPECT_EQ(count(altered(thin.finish({thin.conv(z, 64, 3, 1, 32)})), "conv"), 1) << "eight products for one";
}

TEST(AlterLayout, GroupsOfEveryWidthGiveTheSameAnswers) {
  for (const int64_t width : {3, 4, 6, 8, 12, 16, 24, 40}) {
    for (const int64_t groups : {2, 3, 5}) {
      Net net;
      const ir::ValueId x = net.conv_relu(net.input({1, 3, 5, 6}), width * groups, 1);
      altered(net.finish({net.conv(x, width * groups, 3, 1, groups)}));
      Net wider;
      const ir::ValueId y = wider.conv_relu(wider.input({1, 3, 5, 6}), width * groups, 1);
      altered(wider.finish({wider.conv(y, 2 * width * groups, 1, 1, groups)}));
    }
  }
}

/// Convolution of a kernel of `taps` along each of `rank` spatial dimensions, of its size at any stride of
/// one.
ir::ValueId conv_of_rank(Net& net, ir::ValueId x, int64_t channels, int64_t taps, size_t rank) {
  Shape weights = {channels, net.shape(x)[1]};
  weights.resize(2 + rank, taps);
  const ir::Attrs attrs{{"pads", Shape(2 * rank, taps / 2)}};
  return net.add("conv", {x, net.constant(weights, 0.2), net.constant({channels}, 0.5)}, attrs);
}

/// What networks on signals and volumes do between convolutions: gates of halves of the channels, sums,
/// pools.
ir::Graph gated_net(size_t rank) {
  Net net;
  Shape shape = {1, 3};
  shape.resize(2 + rank, 6);
  ir::ValueId x = net.add("relu", {conv_of_rank(net, net.input(shape), 20, 3, rank)});
  const std::vector<ir::ValueId> halves = net.split_in_two(conv_of_rank(net, x, 40, 3, rank));
  const ir::ValueId gated = net.add("mul", {net.add("tanh", {halves[0]}), net.add("sigmoid", {halves[1]})});
  x = net.add("add", {x, conv_of_rank(net, gated, 20, 1, rank)});
  x = net.add("mul", {x, net.constant(Shape(rank, 1), 1.0)});
  x = net.add("max_pool", {x}, {{"kernel", Shape(rank, 2)}, {"strides", Shape(rank, 2)}});
  x = net.add("concat", {x, net.add("relu", {x})}, {{"axis", int64_t{1}}});
  std::vector<int64_t> axes;
  for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d) - static_cast<int64_t>(rank));
  x = net.add("reduce_mean", {x}, {{"axes", axes}, {"keepdims", int64_t{1}}});
  return net.finish({net.dense(x, 7)});
}

TEST(AlterLayout, SignalsAndVolumesStayInBlocks) {
  for (const size_t rank : {1, 2, 3}) {
    for (const int bits : {128, 256, 512}) {
      const ir::Graph graph = altered(gated_net(rank), bits);
      EXPECT_EQ(count(graph, "conv"), 0) << rank;
      EXPECT_EQ(count(graph, "to_blocked") + count(graph, "transpose"), 0) << rank;
      EXPECT_LE(count(graph, "from_blocked"), 1) << rank;
    }
  }
}

TEST(AlterLayout, ImagesOfAnotherRankAreMadePlainFirst) {
  Net net;
  const ir::ValueId x = net.conv(net.input({2, 3, 4, 6}), 20, 3);
  const ir::ValueId signal = net.add("reshape", {x}, {{"shape", Shape{2, 20, 24}}});
  const ir::ValueId pixel = net.add("reshape", {net.global_pool(x)}, {{"shape", Shape{2, 20, 1}}});
  const ir::ValueId sum = net.add("add", {conv_of_rank(net, signal, 20, 3, 1), pixel});
  altered(net.finish({conv_of_rank(net, pixel, 9, 1, 1), sum}));
}

/// A map, normalized in groups of its channels, between two convolutions.
ir::Graph norm_net(int64_t channels, int64_t groups, bool has_scale, bool is_free = false) {
  Net net;
  const ir::ValueId x = net.conv(net.image({2, 3, 7, 5}, is_free), channels, 3);
  const ir::SymShape map = net.shape(x);
  const ir::SymInt rest = channels / groups * map[2] * map[3];
  const ir::ValueId rows = net.add("reshape", {x}, {{"shape", ir::SymShape{map[0], groups, rest}}});
  const ir::ValueId normed =
      has_scale ? net.add("instance_norm", {rows, net.constant({groups}), net.constant({groups})},
                          {{"epsilon", 1e-3}})
                : net.add("layer_norm", {rows}, {{"axis", int64_t{2}}, {"epsilon", 1e-3}});
  const ir::ValueId scaled =
      net.add("mul", {net.add("reshape", {normed}, {{"shape", map}}), net.constant({channels, 1, 1})});
  return net.finish({net.conv(net.add("relu", {scaled}), 16, 3)});
}

TEST(AlterLayout, NormalizationsOfGroupsStayInBlocks) {
  for (const int bits : {128, 512}) {
    for (const int64_t groups : {1, 2, 5, 20}) {
      for (const bool has_scale : {false, true}) {
        const ir::Graph graph = altered(norm_net(20, groups, has_scale), bits);
        EXPECT_EQ(count(graph, "layer_norm") + count(graph, "instance_norm"), 0) << groups;
        // Of one element a channel, but for what goes out.
        EXPECT_EQ(transforms(graph), groups == 20 ? 1 : 1 + 4) << groups << " groups";
      }
    }
  }
  EXPECT_EQ(count(passes::alter_layout(norm_net(32, 2, false, true), context_of(512)), "layer_norm"), 0);
}

TEST(AlterLayout, NormalizationsOfEachChannelStayInBlocks) {
  Net net;
  const ir::ValueId x = net.conv(net.input({2, 3, 7, 5}), 20, 3);
  const ir::ValueId normed = net.add("instance_norm", {x, net.constant({20}), net.constant({20})});
  const ir::Graph graph = altered(net.finish({net.conv(net.add("relu", {normed}), 16, 3)}));
  EXPECT_EQ(count(graph, "instance_norm"), 0);
  EXPECT_EQ(transforms(graph), 1) << "out";
}

/// Scales of each element and of computed values, groups that are read otherwise.
TEST(AlterLayout, OtherReadersOfGroupsGetPlainTensors) {
  const auto plain = [](const auto& make) {
    Net net;
    const ir::ValueId x = net.conv(net.input({2, 3, 7, 5}), 20, 3);
    const ir::ValueId rows = net.add("reshape", {x}, {{"shape", Shape{2, 4, 175}}});
    return transforms(altered(net.finish({make(net, rows)})));
  };
  EXPECT_EQ(plain([](Net& net, ir::ValueId x) {
              return net.add("layer_norm", {x, net.constant({175}), net.constant({175})});
            }),
            1);
  EXPECT_EQ(plain([](Net& net, ir::ValueId x) {
              return net.add("instance_norm", {x, net.input({4}), net.constant({4})});
            }),
            1);
  EXPECT_EQ(plain([](Net& net, ir::ValueId x) {
              return net.add("softmax", {x}, {{"axis", int64_t{1}}});
            }),
            1);
  EXPECT_EQ(plain([](Net& net, ir::ValueId x) {
              return net.add("reshape", {x}, {{"shape", Shape{2, 4, 25, 7}}});
            }),
            1);
}

TEST(AlterLayout, ConvolutionsOfComputedWeightsStay) {
  Net net;
  const ir::ValueId weights = net.input({8, 16, 3, 3});
  const ir::Graph graph = net.finish({net.add("conv", {net.input({1, 16, 5, 5}), weights})});
  EXPECT_EQ(count(altered(graph), "conv"), 1);
}

TEST(AlterLayout, RunsFromLevelThreeAndCanBeDisabled) {
  const ir::Graph graph = small_nets::residual_net();
  std::vector<std::string> ran;
  for (const int level : {2, 3}) {
    passes::PipelineOptions options{context_of(512), {}};
    options.context.opt_level = level;
    EXPECT_EQ(count(passes::run_pipeline(graph, options, ran), "conv_first"), level == 3 ? 1 : 0);
    options.disabled = {"alter_layout"};
    EXPECT_EQ(count(passes::run_pipeline(graph, options, ran), "conv_first"), 0);
  }
}

}  // namespace
}  // namespace tensormill
