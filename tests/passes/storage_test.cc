/// Views, in-place kernels and the plans that follow from them.
#include <gtest/gtest.h>

#include "compiler/ir/storage.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/in_place.h"
#include "compiler/plan/plan_builder.h"
#include "runtime/package/plan_memory.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::Net;

std::vector<ir::NodeId> views_of(const ir::Graph& graph) {
  const ir::Storage storage(graph);
  std::vector<ir::NodeId> views;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (storage.is_view(static_cast<ir::NodeId>(i))) views.push_back(static_cast<ir::NodeId>(i));
  }
  return views;
}

const ir::Attrs kAxis0{{"axis", int64_t{0}}};
const ir::Attrs kAxis1{{"axis", int64_t{1}}};

TEST(Storage, PartsStandInTheirConcatenation) {
  Net net;
  const ir::ValueId x = net.input({1, 2, 4, 8});
  const ir::ValueId a = net.add("relu", {x}), b = net.add("neg", {x});
  const ir::ValueId flat = net.add("reshape", {b}, {{"shape", Shape{1, 1, 8, 8}}});
  const ir::ValueId inner =
      net.add("concat", {net.add("reshape", {a}, {{"shape", Shape{1, 1, 8, 8}}}), flat}, kAxis1);
  const ir::ValueId outer = net.add("concat", {net.add("abs", {inner}), inner}, kAxis1);
  const ir::Graph graph = net.finish({outer});
  const ir::Storage storage(graph);
  EXPECT_EQ(views_of(graph).size(), 4u);
  EXPECT_EQ(storage.place(a).root, outer);
  EXPECT_EQ(storage.place(a).offset, 512);
  EXPECT_EQ(storage.place(flat).root, outer);
  EXPECT_EQ(storage.place(flat).offset, 512 + 256);
}

TEST(Storage, NodesOfFreeExtentsWriteNoParts) {
  for (const std::string free : {"", ".N."}) {
    Net net;
    const ir::ValueId made = net.add("relu", {net.input({1, 16, 16})});
    const ir::ValueId sum = net.add("reduce_sum", {net.add("neg", {net.input({1, 16, 16}, free)})},
                                    {{"axes", Shape{1}}, {"keepdims", int64_t{1}}});
    EXPECT_EQ(views_of(net.finish({net.add("concat", {made, sum}, kAxis1)})).size(), free.empty() ? 1u : 0u);
  }
}

TEST(Storage, PartsThatCannotMoveAreCopied) {
  const auto views = [](const auto& body) {
    Net net;
    const ir::ValueId x = net.input({1, 4, 16});
    const ir::ValueId made = net.add("relu", {x});
    return views_of(net.finish(body(net, x, made))).size();
  };
  using Values = std::vector<ir::ValueId>;
  // An input, one part twice, one part in two concatenations, a part of a part, parts apart in memory, odd
  // sizes.
  EXPECT_EQ(views([](Net& net, auto x, auto made) {
              return Values{net.add("concat", {made, x}, kAxis1)};
            }),
            0u);
  EXPECT_EQ(views([](Net& net, auto, auto made) {
              return Values{net.add("concat", {made, made}, kAxis1)};
            }),
            0u);
  EXPECT_EQ(
      views([](Net& net, auto x, auto made) {
        const ir::ValueId other = net.add("neg", {x});
        return Values{net.add("concat", {made, other}, kAxis1), net.add("concat", {other, made}, kAxis1)};
      }),
      1u);
  EXPECT_EQ(views([](Net& net, auto x, auto made) {
              const ir::ValueId part = net.split_in_two(made)[1];
              return Values{net.add("concat", {part, net.add("neg", {x})}, kAxis1)};
            }),
            1u);
  EXPECT_EQ(views([](Net& net, auto x, auto made) {
              return Values{net.add("concat", {made, net.add("neg", {x})}, {{"axis", int64_t{2}}})};
            }),
            0u);
  EXPECT_EQ(views([](Net& net, auto, auto) {
              const ir::ValueId odd = net.input({1, 3, 5});
              return Values{net.add("concat", {net.add("relu", {odd}), net.add("neg", {odd})}, kAxis1)};
            }),
            0u);
}

TEST(Storage, SlicesOfWholeRowsAreViews) {
  const auto is_view = [](const Shape& shape, const Shape& starts, const Shape& extents, const Shape& steps) {
    Net net;
    const ir::Attrs attrs{{"starts", starts}, {"extents", extents}, {"steps", steps}};
    return !views_of(net.finish({net.add("slice", {net.input(shape)}, attrs)})).empty();
  };
  EXPECT_TRUE(is_view({1, 6, 16}, {0, 2, 0}, {1, 3, 16}, {1, 1, 1}));
  EXPECT_TRUE(is_view({1, 6, 16}, {0, 5, 0}, {1, 1, 16}, {1, -1, 1}));
  EXPECT_FALSE(is_view({2, 6, 16}, {0, 2, 0}, {2, 3, 16}, {1, 1, 1})) << "two images";
  EXPECT_FALSE(is_view({1, 6, 16}, {0, 2, 0}, {1, 2, 16}, {1, 2, 1})) << "every other row";
  EXPECT_FALSE(is_view({1, 6, 5}, {0, 1, 0}, {1, 3, 5}, {1, 1, 1})) << "not aligned";
  EXPECT_FALSE(is_view({1, 6, 16}, {0, 2, 0}, {1, 3, 8}, {1, 1, 1})) << "parts of rows";
}

/// One fused kernel of the whole graph.
std::vector<size_t> in_place_inputs(Net& net, ir::ValueId output) {
  const ir::Graph fused = passes::fuse_operators(net.finish({output}), {});
  const plan::Kernels kernels = plan::extract_kernels(fused);
  EXPECT_EQ(kernels.kernels.size(), 1u);
  return kernels.kernels[0].in_place;
}

TEST(InPlace, EveryPathMustKeepTheIndex) {
  using Inputs = std::vector<size_t>;
  Net sum;
  EXPECT_EQ(in_place_inputs(sum, sum.add("relu", {sum.add("add", {sum.input({4, 5}), sum.input({4, 5})})})),
            (Inputs{0, 1}));
  Net row;
  EXPECT_EQ(in_place_inputs(row, row.add("add", {row.input({5}), row.input({4, 5})})), (Inputs{1}));
  Net turned;
  const ir::ValueId x = turned.input({4, 4});
  EXPECT_EQ(in_place_inputs(turned, turned.add("add", {x, turned.add("transpose", {x})})), Inputs{});
  Net residual;
  const ir::ValueId image = residual.input({1, 3, 6, 6});
  const ir::ValueId side = residual.input({1, 3, 6, 6});
  const ir::ValueId weights = residual.input({3, 3, 3, 3});
  const ir::Attrs pads{{"pads", Shape{1, 1, 1, 1}}};
  EXPECT_EQ(
      in_place_inputs(residual, residual.add("add", {residual.add("conv", {image, weights}, pads), side})),
      (Inputs{2}));
  Net twice;
  const ir::ValueId y = twice.input({1, 3, 6, 6});
  EXPECT_EQ(
      in_place_inputs(twice, twice.add("add", {twice.add("conv", {y, twice.input({3, 3, 3, 3})}, pads), y})),
      Inputs{});
}

TEST(InPlace, TheOutputAndItsInputsAreOneAliasClass) {
  Net net;
  const ir::ValueId sum = net.add("add", {net.input({5}), net.input({4, 5})});
  const plan::Kernels kernels = plan::extract_kernels(net.finish({sum}));
  const plan::Kernel& kernel = kernels.kernels[0];
  EXPECT_EQ(plan::alias_classes(2, 1, kernel.in_place), (std::vector<int>{-1, 0, 0}));
  EXPECT_EQ(plan::alias_classes(2, 1, {}), (std::vector<int>{-1, -1, -1}));
}

package::ExecPlan plan_of(const ir::Graph& graph) {
  const plan::Kernels kernels = plan::extract_kernels(graph);
  std::vector<std::string> names;
  for (const ir::ValueId output : graph.outputs()) names.push_back(graph.value(output).name);
  const plan::BuiltPlan built =
      plan::build_plan(graph, kernels, std::vector<plan::KernelWorkspace>(kernels.kernels.size()), names);
  package::validate_plan(built.plan);
  return built.plan;
}

TEST(Plan, ConcatenationsOfBlocksHaveNoStep) {
  passes::PassContext context;
  context.facts.vector_bits = 512;
  const ir::Graph graph =
      passes::fuse_operators(passes::alter_layout(small_nets::squeeze_net(), context), context);
  const package::ExecPlan plan = plan_of(graph);
  int64_t views = 0;
  for (const package::Buffer& buffer : plan.buffers)
    views += buffer.kind == package::BufferKind::kView ? 1 : 0;
  EXPECT_GE(views, 4);
  for (const package::Step& step : plan.steps)
    EXPECT_EQ(step.name.find("concat"), std::string::npos) << step.name;
}

TEST(Plan, ResidualSumsLieOnTheirOperand) {
  passes::PassContext context;
  context.facts.vector_bits = 512;
  const ir::Graph graph =
      passes::fuse_operators(passes::alter_layout(small_nets::residual_net(), context), context);
  package::ExecPlan plan = plan_of(graph);
  const package::MemoryPlan memory = package::plan_memory(plan);
  int64_t shared = 0;
  for (package::Step& step : plan.steps) {
    for (const package::InPlace& pair : step.in_place) {
      const auto offset = [&](int32_t position) {
        return memory.offsets[static_cast<size_t>(step.args[static_cast<size_t>(position)])];
      };
      shared += offset(pair.output) == offset(pair.input) ? 1 : 0;
    }
    step.in_place.clear();
  }
  EXPECT_GE(shared, 3);
  EXPECT_LT(memory.arena_bytes, package::plan_memory(plan).arena_bytes);
}

TEST(Plan, ViewsOfInputsAndOutputsAreValid) {
  Net net;
  const ir::ValueId x = net.input({4, 16});
  const std::vector<ir::ValueId> rows =
      net.graph.add_node("split", {x}, {{"axis", int64_t{0}}, {"sizes", Shape{1, 3}}});
  const ir::ValueId joined =
      net.add("concat", {net.add("relu", {rows[1]}), net.add("neg", {rows[0]})}, kAxis0);
  const package::ExecPlan plan = plan_of(net.finish({joined, rows[0]}));
  EXPECT_EQ(plan.steps.size(), 2u);
}

}  // namespace
}  // namespace tensormill
