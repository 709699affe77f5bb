/// Which nodes are in the body of which loop, in what order they stand, and what is no loop.
#include "compiler/ir/loops.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "tests/ir/support.h"

namespace tensormill::ir {
namespace {

/// The inner loop's begin reads nothing of the outer one; "doubled" is read in both bodies and in none.
constexpr std::string_view kNested = R"(graph "nested" (%m: i64[1], %x: f32[2]) {
  %one = const f32[2] {1.0, 1.0}
  %i: i64[], %t: f32[2] = loop_begin(%m, %x) {carried: 1, condition: 0, loop: 0, max_trips: 1}
  %doubled: f32[2] = add(%x, %x)
  %j: i64[], %u: f32[2] = loop_begin(%m, %x) {carried: 1, condition: 0, loop: 1, max_trips: 1}
  %v: f32[2] = add(%u, %doubled)
  %w: f32[2] = add(%v, %t)
  %f: f32[2], %n: i64[1] = loop_end(%j, %w) {carried: 1, condition: 0, counted: 0, loop: 1, trips: 0}
  %g: f32[2] = mul(%f, %one)
  %y: f32[2], %k: i64[1] = loop_end(%i, %g) {carried: 1, condition: 0, counted: 0, loop: 0, trips: 0}
  %z: f32[2] = add(%y, %doubled)
  return %z, %k
}
)";

NodeId producer(const Graph& graph, std::string_view value) {
  return graph.value(graph.find_value(value).value()).producer;
}

TEST(Loops, AreKnownOfEachNode) {
  const Graph graph = graph_of(kNested);
  const std::vector<NodeId> around = loops_around(graph);
  const auto loop_of = [&](std::string_view value) {
    return around[static_cast<size_t>(producer(graph, value))];
  };
  const NodeId outer = producer(graph, "i"), inner = producer(graph, "j");
  for (const char* outside : {"i", "doubled", "y", "z"}) EXPECT_EQ(loop_of(outside), kAbsent) << outside;
  for (const char* once : {"j", "f", "g"}) EXPECT_EQ(loop_of(once), outer) << once;
  // What reads the inner loop's values alone is in its body like what reads both.
  for (const char* twice : {"v", "w"}) EXPECT_EQ(loop_of(twice), inner) << twice;
}

TEST(Loops, StandOneInsideTheOther) {
  const Graph graph = graph_of(kNested);
  std::vector<std::string> names;
  for (const NodeId id : loop_order(graph)) names.push_back(graph.value(graph.node(id).outputs[0]).name);
  EXPECT_EQ(names, (std::vector<std::string>{"doubled", "i", "j", "v", "w", "f", "g", "y", "z"}));
}

TEST(Loops, AGraphWithoutHasNone) {
  const Graph graph = graph_of("graph \"g\" (%x: f32[2]) {\n  %y: f32[2] = neg(%x)\n  return %y\n}\n");
  EXPECT_TRUE(loops_around(graph).empty());
  EXPECT_EQ(loop_order(graph), std::vector<NodeId>{0});
}

TEST(Loops, AreEvaluatedAsOftenAsTheySay) {
  const Graph graph = graph_of(kNested);
  const std::vector<float> x = {1.5f, -2.0f};
  for (const int64_t m : {0, 1, 3}) {
    const std::vector<int64_t> trips{m};
    const std::vector<Tensor> results =
        evaluate_reference(graph, {Tensor::from<int64_t>({1}, trips), Tensor::from<float>({2}, x)});
    EXPECT_EQ(results[1].values<int64_t>()[0], m);
    for (size_t i = 0; i < 2; ++i) {
      float t = x[i];
      for (int64_t outer = 0; outer < m; ++outer) {
        float u = x[i];
        for (int64_t inner = 0; inner < m; ++inner) u = u + (x[i] + x[i]) + t;
        t = u;
      }
      EXPECT_EQ(results[0].values<float>()[i], t + (x[i] + x[i])) << m;
    }
  }
}

void expect_refused(const std::string& text, const char* message) {
  try {
    loops_around(graph_of(text));
    ADD_FAILURE() << "no error, expected " << message;
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(message));
  }
}

TEST(Loops, WhatIsNoneIsRefused) {
  struct Case {
    const char* from;
    const char* to;
    const char* message;
  };
  const Case cases[] = {
      {"%z: f32[2] = add(%y, %doubled)", "%z: f32[2] = add(%g, %doubled)", "is in the body of a loop"},
      {"loop: 1, max_trips: 1", "loop: 0, max_trips: 1", "has the number of another loop"},
      {"counted: 0, loop: 1", "counted: 0, loop: 5", "has no begin"},
      {"loop_end(%j, %w)", "loop_end(%i, %t)", "has no begin"},
  };
  for (const Case& wrong : cases) {
    std::string text(kNested);
    text.replace(text.find(wrong.from), std::string_view(wrong.from).size(), wrong.to);
    expect_refused(text, wrong.message);
  }
  const std::string open =
      "graph \"g\" (%m: i64[1], %x: f32[2]) {\n  %i: i64[], %t: f32[2] = loop_begin(%m, %x) "
      "{carried: 1, condition: 0, loop: 0, max_trips: 1}\n  %y: f32[2] = neg(%x)\n  return %y\n}\n";
  expect_refused(open, "has no end");
}

}  // namespace
}  // namespace tensormill::ir
