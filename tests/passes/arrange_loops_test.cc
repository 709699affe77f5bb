/// The body of a loop holds what changes from iteration to iteration, and nothing else.
#include <gmock/gmock.h>

#include "compiler/ir/loops.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill::passes {
namespace {

/// The body's nodes stand before, in and behind it; "sum" does not change.
constexpr std::string_view kScattered = R"(graph "scattered" (%m: i64[1], %x: f32[2]) {
  %i: i64[], %t: f32[2] = loop_begin(%m, %x) {carried: 1, condition: 0, loop: 0, max_trips: 1} from ["loop"]
  %sum: f32[2] = add(%x, %x)
  %half: f32[2] = sub(%t, %sum)
  %late: f32[2] = neg(%sum)
  %y: f32[2], %k: i64[1] = loop_end(%i, %half) {carried: 1, condition: 0, counted: 0, loop: 0, trips: 0} from ["loop"]
  %z: f32[2] = add(%y, %late)
  return %z, %k
}
)";

std::vector<std::string> ops_of(const ir::Graph& graph) {
  std::vector<std::string> ops;
  for (const ir::Node& node : graph.nodes()) ops.push_back(node.op);
  return ops;
}

TEST(ArrangeLoops, MovesWhatABodyDoesNotChangeBeforeIt) {
  const ir::Graph before = ir::parse_graph(kScattered, ops::standard_ops());
  const ir::Graph after = arrange_loops(before, {});
  EXPECT_EQ(ops_of(after), (std::vector<std::string>{"add", "neg", "loop_begin", "sub", "loop_end", "add"}));
  ir::verify(after);
  const std::vector<float> x = {1.0f, -0.5f};
  for (const int64_t m : {0, 1, 4}) {
    const std::vector<int64_t> trips{m};
    const std::vector<Tensor> inputs{Tensor::from<int64_t>({1}, trips), Tensor::from<float>({2}, x)};
    const std::vector<Tensor> results = ir::evaluate_reference(after, inputs);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(results[0].values<float>()[i], x[i] - static_cast<float>(m) * 2 * x[i] - 2 * x[i]);
  }
}

TEST(ArrangeLoops, LeavesAGraphWithoutLoopsAsItIs) {
  small_nets::Net net;
  const ir::ValueId x = net.input({2, 3});
  const ir::Graph graph = net.finish({net.add("neg", {net.add("abs", {x})})});
  EXPECT_EQ(ir::print(arrange_loops(graph, {})), ir::print(graph));
}

TEST(ArrangeLoops, NothingIsFusedOverTheEdgeOfABody) {
  PassContext context;
  const ir::Graph after =
      fuse_operators(arrange_loops(ir::parse_graph(kScattered, ops::standard_ops()), context), context);
  const std::vector<ir::NodeId> around = ir::loops_around(after);
  ASSERT_FALSE(around.empty());
  for (size_t i = 0; i < after.nodes().size(); ++i) {
    const ir::Node& node = after.nodes()[i];
    if (node.op != "fused") continue;
    EXPECT_EQ(around[i] != ir::kAbsent, ops_of(*node.region) == std::vector<std::string>{"sub"});
  }
}

}  // namespace
}  // namespace tensormill::passes
