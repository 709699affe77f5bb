/// A value that several nodes of one kernel read, and no others, is made in that kernel.
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::Net;

/// Kernels after fusion; the answers stay the same.
int64_t kernels_of(const ir::Graph& graph) {
  const ir::Graph fused = passes::fuse_operators(graph, passes::PassContext());
  small_nets::expect_same(graph, fused);
  return static_cast<int64_t>(fused.nodes().size());
}

ir::ValueId silu(Net& net, ir::ValueId x) { return net.add("mul", {x, net.add("sigmoid", {x})}); }

TEST(FuseReaders, AConvolutionsResultThatIsMultipliedByItsOwnGate) {
  Net net;
  EXPECT_EQ(kernels_of(net.finish({silu(net, net.conv(net.input({1, 3, 5, 6}), 4, 3))})), 1);
}

TEST(FuseReaders, OneNodeThatReadsAValueTwice) {
  Net net;
  const ir::ValueId x = net.conv(net.input({1, 3, 5, 6}), 4, 1);
  EXPECT_EQ(kernels_of(net.finish({net.add("mul", {x, x})})), 1);
}

TEST(FuseReaders, OneGateAfterTheOther) {
  Net net;
  EXPECT_EQ(kernels_of(net.finish({silu(net, silu(net, net.conv(net.input({1, 3, 5, 6}), 4, 1)))})), 1);
}

TEST(FuseReaders, NotWhatIsReadOutsideToo) {
  Net net;
  const ir::ValueId x = net.conv(net.input({1, 3, 5, 6}), 4, 1);
  EXPECT_EQ(kernels_of(net.finish({x, silu(net, x)})), 2);
}

TEST(FuseReaders, NotWhereAPartOfTheGroupHasAnotherShape) {
  Net net;
  const ir::ValueId x = net.conv(net.input({1, 3, 5, 6}), 4, 1);
  EXPECT_EQ(kernels_of(net.finish({net.add("concat", {x, silu(net, x)}, {{"axis", int64_t{1}}})})), 2);
}

TEST(FuseReaders, NotWhatIsReadInAnotherOrder) {
  Net net;
  const ir::ValueId x = net.conv(net.input({1, 4, 4, 4}), 4, 1);
  const ir::ValueId turned = net.add("transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  EXPECT_EQ(kernels_of(net.finish({net.add("mul", {x, turned})})), 2);
}

}  // namespace
}  // namespace tensormill
