/// Weights of softmax that are no normal numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::Net;

/// Whether the softmax of the graph is marked.
bool is_marked(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == "softmax") return node.attrs.has("weights");
  }
  ADD_FAILURE() << "no softmax";
  return false;
}

ir::Graph passed(const ir::Graph& graph) {
  const ir::Graph result = passes::vanishing_weights(graph, {});
  small_nets::expect_same(graph, result);
  return result;
}

TEST(VanishingWeights, OnlyOfSumsAlongTheLastAxis) {
  const auto marked = [](const auto& body) {
    Net net;
    const ir::ValueId x = net.input({2, 5, 7});
    return is_marked(passed(net.finish(body(net, x))));
  };
  using Values = std::vector<ir::ValueId>;
  EXPECT_TRUE(marked([](Net& net, ir::ValueId x) {
    return Values{net.add("matmul", {net.add("softmax", {x}), net.constant({7, 3})})};
  }));
  EXPECT_TRUE(marked([](Net& net, ir::ValueId x) {
    const ir::ValueId rows = net.add("reshape", {net.add("softmax", {x})}, {{"shape", Shape{1, 10, 7}}});
    return Values{net.add("matmul", {rows, net.constant({7, 3})})};
  }));
  EXPECT_FALSE(marked([](Net& net, ir::ValueId x) {
    const ir::ValueId p = net.add("softmax", {x});
    return Values{p, net.add("matmul", {p, net.constant({7, 3})})};
  })) << "an output";
  EXPECT_FALSE(marked([](Net& net, ir::ValueId x) {
    return Values{net.add("log", {net.add("softmax", {x})})};
  })) << "another reader";
  EXPECT_FALSE(marked([](Net& net, ir::ValueId x) {
    return Values{net.add("matmul", {net.add("softmax", {x}, {{"axis", int64_t{1}}}), net.constant({7, 3})})};
  })) << "another axis";
  EXPECT_FALSE(marked([](Net& net, ir::ValueId x) {
    return Values{net.add("matmul", {net.constant({4, 5}), net.add("softmax", {x})})};
  })) << "the other operand";
}

}  // namespace
}  // namespace tensormill
