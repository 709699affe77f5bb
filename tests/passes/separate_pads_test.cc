/// Convolutions of free extents: their pads are nodes of their own, with the same answers.
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::count;
using Ints = std::vector<int64_t>;

ir::Graph padded_net(bool is_free) {
  small_nets::Net net;
  const ir::ValueId x = net.image({2, 4, 7, 6}, is_free);
  const ir::ValueId a = net.add("conv", {x, net.constant({6, 4, 3, 3}), net.constant({6})},
                                {{"pads", Ints{1, 0, 2, 1}}, {"strides", Ints{2, 1}}});
  const ir::ValueId b =
      net.add("conv", {a, net.constant({6, 1, 3, 3})},
              {{"pads", Ints{2, 2, 2, 2}}, {"dilations", Ints{2, 2}}, {"group", int64_t{6}}});
  const ir::ValueId c = net.add("conv", {b, net.constant({3, 6, 1, 1})}, {{"pads", Ints{0, 0, 0, 0}}});
  const ir::ValueId row = net.add(
      "conv", {net.input({1, 2, 9}, is_free ? "..L" : ""), net.constant({2, 2, 5})}, {{"pads", Ints{4, 0}}});
  return net.finish({c, row});
}

TEST(SeparatePads, OfFreeExtentsGiveTheSameAnswers) {
  const ir::Graph graph = padded_net(true);
  passes::PassContext context;
  context.is_generic = true;
  const ir::Graph result = passes::separate_pads(graph, context);
  small_nets::expect_same(small_nets::at_hints(graph), small_nets::at_hints(result), 0);
  EXPECT_EQ(count(result, "pad"), 3);
  for (const ir::Node& node : result.nodes()) {
    if (node.op != "conv") continue;
    for (const int64_t pad : node.attrs.ints_of("pads")) EXPECT_EQ(pad, 0);
  }
}

TEST(SeparatePads, OthersKeepTheirs) {
  for (const bool is_generic : {false, true}) {
    passes::PassContext context;
    context.is_generic = is_generic;
    EXPECT_EQ(count(passes::separate_pads(padded_net(false), context), "pad"), 0);
  }
}

}  // namespace
}  // namespace tensormill
