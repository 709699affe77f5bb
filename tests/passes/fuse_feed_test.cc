/// A pointwise convolution takes in the depthwise convolution or the channel moves that feed it where cores
/// can share the image by rows and have the weights in cache.
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::count;
using small_nets::Net;

passes::PassContext context_of(int cores, int64_t l2_bytes) {
  passes::PassContext context;
  context.facts.vector_bits = 256;
  context.facts.num_cores = cores;
  context.facts.l2_bytes = l2_bytes;
  return context;
}

/// Kernels that hold `op` and a convolution over the channels, after fusion; the answers stay the same.
int64_t fed_by(const std::string& op, const ir::Graph& graph, int cores = 2, int64_t l2_bytes = 1 << 20) {
  const passes::PassContext context = context_of(cores, l2_bytes);
  const ir::Graph fused = passes::fuse_operators(passes::alter_layout(graph, context), context);
  small_nets::expect_same(graph, fused);
  int64_t found = 0;
  for (const ir::Node& node : fused.nodes()) {
    const bool both = node.region != nullptr && count(*node.region, op) > 0;
    found += both && count(*node.region, "conv_blocked") > 0 ? 1 : 0;
  }
  return found;
}

/// 16 channels of `rows` rows, depthwise with a clip, then `channels` in a sum with another convolution.
ir::Graph separable(int64_t rows, bool read_twice = false, int64_t channels = 24, int64_t stride = 1) {
  Net net;
  const ir::ValueId x = net.conv(net.input({1, 16, rows, 6}), 16, 1);
  const ir::ValueId y = net.add("clip", {net.conv(x, 16, 3, stride, 16)}, {{"min", 0.0}, {"max", 6.0}});
  const ir::ValueId z =
      net.add("relu", {net.add("add", {net.conv(y, channels, 1), net.conv(x, channels, 1, stride)})});
  return read_twice ? net.finish({net.add("concat", {z, y}, {{"axis", int64_t{1}}})}) : net.finish({z});
}

TEST(FuseFeed, ADepthwiseConvolutionWhoseRowsCoresCanShare) {
  EXPECT_EQ(fed_by("conv_depthwise", separable(6)), 1);
  EXPECT_EQ(fed_by("conv_depthwise", separable(7)), 0);
  EXPECT_EQ(fed_by("conv_depthwise", separable(7), 1), 1);
  EXPECT_EQ(fed_by("conv_depthwise", separable(6), 2, 4096), 0) << "1.5 KB of weights in a quarter of 4 KB";
  EXPECT_EQ(fed_by("conv_depthwise", separable(6, true)), 0) << "another reader";
}

TEST(FuseFeed, ADepthwiseConvolutionThatEachCoreComputesForManyChannels) {
  EXPECT_EQ(fed_by("conv_depthwise", separable(7, false, 192)), 1);
  EXPECT_EQ(fed_by("conv_depthwise", separable(7, false, 184)), 0) << "a larger share of the time";
  EXPECT_EQ(fed_by("conv_depthwise", separable(7, false, 192), 3), 0) << "three times";
  EXPECT_EQ(fed_by("conv_depthwise", separable(13, false, 192, 2)), 0) << "reads four times as much";
}

TEST(FuseFeed, ChannelsThatWereShuffled) {
  Net net;
  const ir::ValueId x = net.input({1, 12, 4, 5});
  const ir::ValueId a = net.conv_relu(x, 10, 1), b = net.conv_relu(x, 10, 3);
  const ir::ValueId both = net.shuffle_in_two(net.add("concat", {a, b}, {{"axis", int64_t{1}}}));
  const ir::Graph graph = net.finish({net.conv(net.split_in_two(both)[1], 7, 1)});
  EXPECT_EQ(fed_by("gather_channels", graph), 1);
}

}  // namespace
}  // namespace tensormill
