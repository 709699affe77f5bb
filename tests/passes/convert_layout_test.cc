/// Layouts that are asked for: the same answers, operators of that layout, and transposes only where maps
/// come in or go out.
#include <gtest/gtest.h>

#include <functional>

#include "compiler/ir/patch.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/pass.h"
#include "runtime/base/error.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using passes::LayoutLog;
using small_nets::count;
using small_nets::Net;
using Ints = std::vector<int64_t>;

passes::DesiredLayout layout_of(const std::string& name, const std::vector<std::string>& ops = {}) {
  return *passes::parse_desired_layout(name, ops, ops::standard_ops());
}

struct Converted {
  ir::Graph graph;
  LayoutLog log;
};

/// The pass alone, checked against the graph it came from.
Converted converted(const ir::Graph& graph, const std::string& name,
                    const std::vector<std::string>& ops = {}) {
  LayoutLog log;
  passes::PassContext context;
  context.layout = passes::bind_desired_layout(layout_of(name, ops), graph);
  context.layout_log = &log;
  ir::Graph result = passes::convert_layout(graph, context);
  small_nets::expect_same(graph, result);
  return {std::move(result), std::move(log)};
}

/// Nodes of operators that have a layout with the channels last, or first.
int64_t laid_out(const ir::Graph& graph, bool last) {
  int64_t found = 0;
  for (const ir::Node& node : graph.nodes())
    found += passes::has_layout(node.op) && node.attrs.has("channels_last") == last ? 1 : 0;
  return found;
}

std::string stayed(const LayoutLog& log) {
  std::string text;
  for (const passes::StayedNode& node : log.stayed) text += node.op + ": " + node.reason + "\n";
  return text;
}

const std::vector<std::pair<const char*, std::function<ir::Graph()>>>& nets() {
  static const std::vector<std::pair<const char*, std::function<ir::Graph()>>> list = {
      {"residual", &small_nets::residual_net},
      {"mobile", &small_nets::mobile_net},
      {"squeeze", &small_nets::squeeze_net},
      {"shuffle", &small_nets::shuffle_net}};
  return list;
}

TEST(ConvertLayout, NetsAreChannelsLastWithOneTransposeAtTheInput) {
  for (const auto& [name, make] : nets()) {
    const Converted made = converted(make(), "NHWC");
    EXPECT_EQ(laid_out(made.graph, false), 0) << name;
    EXPECT_GT(laid_out(made.graph, true), 0) << name;
    EXPECT_EQ(stayed(made.log), "") << name;
    // Shuffles are transposes of the model's own.
    const int64_t own = std::string(name) == "shuffle" ? 4 : 0;
    EXPECT_LE(count(made.graph, "transpose"), 1 + own) << name;
  }
}

TEST(ConvertLayout, NetsAreChannelsFirstAsTheyAre) {
  for (const auto& [name, make] : nets()) {
    const ir::Graph graph = make();
    const Converted made = converted(graph, "NCHW");
    EXPECT_EQ(count(made.graph, "transpose"), count(graph, "transpose")) << name;
    EXPECT_EQ(laid_out(made.graph, true), 0) << name;
    EXPECT_EQ(stayed(made.log), "") << name;
  }
}

/// A net as a format with the channels last is imported: what is between convolutions has its own axes.
class LastNet : public Net {
public:
  ir::ValueId first(ir::ValueId x) { return add("transpose", {x}, {{"perm", Ints{0, 3, 1, 2}}}); }
  ir::ValueId last(ir::ValueId x) { return add("transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}}); }
  ir::ValueId conv_last(ir::ValueId x, int64_t channels, int64_t kernel, int64_t stride = 1,
                        int64_t group = 1) {
    return last(conv(first(x), channels, kernel, stride, group));
  }
};

ir::Graph last_net() {
  LastNet net;
  const ir::ValueId x = net.add("relu", {net.conv_last(net.input({2, 9, 10, 3}), 12, 3, 2)});
  const ir::ValueId padded = net.add("pad", {x}, {{"pads", Ints{0, 1, 0, 0, 0, 0, 2, 0}}});
  const ir::ValueId scaled = net.add("mul", {padded, net.constant({12})});
  const ir::ValueId deep = net.conv_last(scaled, 12, 3, 1, 12);
  const ir::ValueId sum = net.add("add", {deep, scaled});
  const ir::ValueId both = net.add("concat", {sum, net.conv_last(sum, 5, 1)}, {{"axis", int64_t{3}}});
  const ir::ValueId part =
      net.add("slice", {both},
              {{"starts", Ints{0, 1, 0, 2}}, {"extents", Ints{2, 4, 7, 13}}, {"steps", Ints{1, 1, 1, 1}}});
  const ir::ValueId pooled = net.last(net.max_pool(net.first(part)));
  const ir::ValueId mean = net.add("reduce_mean", {pooled}, {{"axes", Ints{1, 2}}, {"keepdims", int64_t{0}}});
  const ir::ValueId map = net.conv_last(pooled, 4, 1);
  return net.finish({net.add("softmax", {map}, {{"axis", int64_t{-1}}}), mean});
}

TEST(ConvertLayout, ModelsOfEitherLayoutComeOutInTheOneAskedFor) {
  const Converted last = converted(last_net(), "NHWC");
  EXPECT_EQ(count(last.graph, "transpose"), 0);
  EXPECT_EQ(laid_out(last.graph, false), 0);
  EXPECT_EQ(stayed(last.log), "");
  const Converted first = converted(last_net(), "NCHW");
  EXPECT_EQ(count(first.graph, "transpose"), 2) << "the input and the output that is a map";
  EXPECT_EQ(laid_out(first.graph, true), 0);
  EXPECT_EQ(stayed(first.log), "");
  for (const ir::Node& node : first.graph.nodes()) {
    if (node.op == "softmax") {
      EXPECT_EQ(node.attrs.int_of("axis"), 1);
    }
  }
}

TEST(ConvertLayout, UnaskedMapsThatTheModelTurnsAreComputedChannelsFirst) {
  const ir::Graph graph = last_net();
  const ir::Graph sunk = passes::sink_transposes(graph, {});
  small_nets::expect_same(graph, sunk);
  EXPECT_EQ(count(sunk, "transpose"), 2) << "the input and the output that is a map";
  // Gates of pixels, and a value with readers of both kinds.
  LastNet net;
  const ir::ValueId x = net.conv_last(net.input({1, 6, 6, 3}), 8, 3);
  const ir::ValueId mean = net.add("reduce_mean", {x}, {{"axes", Ints{1, 2}}, {"keepdims", int64_t{1}}});
  const ir::ValueId gated = net.add("mul", {x, net.add("sigmoid", {net.conv_last(mean, 8, 1)})});
  const ir::ValueId rows = net.add("matmul", {gated, net.constant({8, 5})});
  const ir::Graph gates = net.finish({net.conv_last(net.add("add", {gated, x}), 4, 3), rows});
  const ir::Graph made = passes::sink_transposes(gates, {});
  small_nets::expect_same(gates, made);
  EXPECT_EQ(count(made, "transpose"), 3) << "the input, the output and the rows of the product";
}

TEST(ConvertLayout, UnaskedNoTransposeIsAdded) {
  // Tokens: what comes from a convolution meets what a product makes.
  LastNet net;
  const ir::ValueId x = net.conv_last(net.input({1, 6, 6, 3}), 8, 3);
  const ir::ValueId rows = net.add("matmul", {x, net.constant({8, 8})});
  const ir::ValueId sum = net.add("add", {rows, net.add("relu", {x})});
  const ir::ValueId other = net.add("matmul", {net.add("sigmoid", {x}), net.constant({8, 2})});
  const ir::Graph graph = net.finish({sum, other});
  const ir::Graph made = passes::sink_transposes(graph, {});
  small_nets::expect_same(graph, made);
  EXPECT_LE(count(made, "transpose"), 2);
  for (const auto& [name, make] : nets())
    EXPECT_EQ(ir::print(passes::sink_transposes(make(), {})), ir::print(make())) << name;
}

/// Runs `body` on seven channels out of a convolution, and a convolution on what it makes.
Converted on_map(const std::function<ir::ValueId(Net&, ir::ValueId)>& body, bool is_read = true) {
  Net net;
  const ir::ValueId y = body(net, net.conv(net.input({2, 4, 6, 5}), 7, 3));
  return converted(net.finish({is_read ? net.conv(y, 5, 3) : y}), "NHWC");
}

TEST(ConvertLayout, WhatStandsBetweenConvolutionsFollows) {
  const auto expect_last = [](const std::string& op, const ir::Attrs& attrs, const Ints& indices = {},
                              int64_t transposes = 2) {
    const Converted made = on_map([&](Net& net, ir::ValueId x) {
      std::vector<ir::ValueId> inputs = {x};
      const Shape shape = {static_cast<int64_t>(indices.size())};
      if (!indices.empty())
        inputs.push_back(net.graph.add_constant("rows", Tensor::from<int64_t>(shape, indices)));
      return net.add(op, inputs, attrs);
    });
    EXPECT_EQ(count(made.graph, "transpose"), transposes) << op << ": in and out";
    EXPECT_EQ(laid_out(made.graph, false), 0) << op;
    EXPECT_EQ(stayed(made.log), "") << op;
  };
  expect_last("gather", {{"axis", int64_t{2}}}, {0, 0, 1, 5, -1});
  expect_last("gather", {{"axis", int64_t{1}}}, {6, 2, 2});
  expect_last("slice",
              {{"starts", Ints{0, 2, 1, 4}}, {"extents", Ints{2, 5, 3, 5}}, {"steps", Ints{1, 1, 2, -1}}});
  expect_last("pad", {{"pads", Ints{0, 1, 1, 2, 0, 0, 0, 3}}, {"value", 2.0}});
  expect_last("pad", {{"pads", Ints{0, 0, 1, 2, 0, 0, 0, 3}}, {"mode", std::string("reflect")}});
  expect_last("tile", {{"repeats", Ints{1, 2, 1, 3}}});
  expect_last("softmax", {{"axis", int64_t{1}}});
  expect_last("softmax", {{"axis", int64_t{-1}}});
  expect_last("cumsum", {{"axis", int64_t{2}}});
  expect_last("reduce_max", {{"axes", Ints{1}}, {"keepdims", int64_t{1}}});
  expect_last("reduce_mean", {{"axes", Ints{-1, 2}}, {"keepdims", int64_t{1}}}, {}, 1);  // one pixel goes out
  expect_last("lrn", {{"size", int64_t{3}}, {"alpha", 0.5}});
  expect_last("avg_pool", {{"kernel", Ints{3, 2}}, {"pads", Ints{1, 0, 1, 1}}, {"strides", Ints{2, 1}}});
  expect_last("max_pool", {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}});
}

TEST(ConvertLayout, NormalizationsAndBroadcastsFollow) {
  const Converted made = on_map([](Net& net, ir::ValueId x) {
    const ir::ValueId row = net.constant({7}), variance = net.add("abs", {net.constant({7})});
    ir::ValueId y = net.add("batch_norm", {x, row, net.constant({7}), net.constant({7}), variance});
    y = net.add("instance_norm", {y, row, net.constant({7})});
    y = net.add("mul", {y, net.constant({7, 1, 1})});
    y = net.add("add", {net.constant({6, 5}), y});
    y = net.add("where", {net.add("greater", {y, net.constant({})}), y, net.constant({1, 7, 1, 5})});
    return net.add("clip", {y, net.constant({}, -2.0), net.constant({}, 2.0)});
  });
  EXPECT_EQ(count(made.graph, "transpose"), 2);
  EXPECT_EQ(laid_out(made.graph, false), 0);
  EXPECT_EQ(stayed(made.log), "");
}

TEST(ConvertLayout, TransposedConvolutionsOfAnyGroupsAreOperatorsOfTheLayout) {
  for (const int64_t groups : {1, 2}) {
    const Converted made = on_map([&](Net& net, ir::ValueId x) {
      const ir::ValueId wide = net.conv(x, 8, 1);
      return net.add("conv_transpose", {wide, net.constant({8, 3, 3, 2}, 0.3), net.constant({3 * groups})},
                     {{"group", groups}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 0, 1}}});
    });
    EXPECT_EQ(count(made.graph, "transpose"), 2) << groups;
    EXPECT_EQ(laid_out(made.graph, false), 0) << groups;
  }
}

TEST(ConvertLayout, GroupsOfEveryWidthAreConverted) {
  for (const int64_t groups : {2, 7, 14}) {
    Net net;
    const ir::ValueId x = net.conv(net.input({1, 3, 5, 6}), 14, 1);
    const Converted made = converted(net.finish({net.conv(x, 28, 3, 1, groups)}), "NHWC");
    EXPECT_EQ(laid_out(made.graph, false), 0) << groups;
    EXPECT_EQ(count(made.graph, "transpose"), 2) << groups;
  }
}

TEST(ConvertLayout, SignalsAndVolumes) {
  for (const size_t rank : {1, 3}) {
    Net net;
    Shape shape = {2, 3}, weights = {6, 3}, deep = {6, 1};
    shape.resize(2 + rank, 5);
    weights.resize(2 + rank, 3);
    deep.resize(2 + rank, 2);
    const ir::ValueId x =
        net.add("relu", {net.add("conv", {net.input(shape), net.constant(weights), net.constant({6})},
                                 {{"pads", Shape(2 * rank, 1)}})});
    const ir::ValueId y = net.add("conv", {x, net.constant(deep)}, {{"group", int64_t{6}}});
    const ir::ValueId pooled = net.add("avg_pool", {y}, {{"kernel", Shape(rank, 2)}});
    const Converted made = converted(net.finish({pooled}), "NHWC");
    EXPECT_EQ(laid_out(made.graph, false), 0) << rank;
    EXPECT_EQ(count(made.graph, "transpose"), 2) << rank;
  }
}

TEST(ConvertLayout, WhatTakesTheModelsAxesGetsThemAndIsTold) {
  const Converted rows = on_map(
      [](Net& net, ir::ValueId x) {
        return net.add("matmul", {x, net.constant({5, 3})});
      },
      false);
  EXPECT_EQ(stayed(rows.log), "matmul: it takes axes as the model has them\n");
  const Converted flat = on_map(
      [](Net& net, ir::ValueId x) {
        return net.add("reshape", {x}, {{"shape", Shape{2, 210}}});
      },
      false);
  EXPECT_EQ(stayed(flat.log), "reshape: it joins axes that do not lie side by side in the layout\n");
  EXPECT_EQ(count(flat.graph, "transpose"), 2);
  Net net;
  const ir::ValueId weights = net.input({8, 7, 3, 3});
  const ir::ValueId x = net.conv(net.input({1, 4, 5, 5}), 7, 3);
  const Converted computed = converted(net.finish({net.add("conv", {x, weights})}), "NHWC");
  EXPECT_EQ(stayed(computed.log), "conv: its weights are no constants\n");
}

TEST(ConvertLayout, PixelsOfOneAndJoinedSpatialAxesMoveNothing) {
  const Converted made = on_map(
      [](Net& net, ir::ValueId x) {
        const ir::ValueId tokens = net.add(
            "transpose", {net.add("reshape", {x}, {{"shape", Shape{2, 7, 30}}})}, {{"perm", Ints{0, 2, 1}}});
        return net.add("matmul", {tokens, net.constant({7, 3})});
      },
      false);
  EXPECT_EQ(count(made.graph, "transpose"), 1) << "tokens of pixels are what channels last are";
  const Converted head =
      on_map([](Net& net, ir::ValueId x) { return net.dense(net.global_pool(x), 3); }, false);
  EXPECT_EQ(count(head.graph, "transpose"), 1);
}

TEST(ConvertLayout, OperatorsByName) {
  Net net;
  const ir::ValueId x = net.conv_relu(net.input({1, 3, 8, 8}), 16, 3);
  const ir::ValueId pooled = net.max_pool(x);
  const ir::Graph graph = net.finish({net.conv(net.add("sigmoid", {pooled}), 8, 1)});
  const Converted pools = converted(graph, "NHWC", {"max_pool"});
  EXPECT_EQ(laid_out(pools.graph, true), 1);
  EXPECT_EQ(count(pools.graph, "transpose"), 2) << "around the pool and what follows it";
  EXPECT_EQ(stayed(pools.log), "");
  const Converted convolutions = converted(graph, "NHWC", {"conv", "sigmoid"});
  EXPECT_EQ(laid_out(convolutions.graph, true), 3) << "the pool follows";
  EXPECT_EQ(stayed(convolutions.log), "");
}

TEST(ConvertLayout, BlocksAreNotChosenWhereALayoutIs) {
  for (const auto& [name, make] : nets()) {
    for (const char* layout : {"NCHW", "NHWC"}) {
      for (const int level : {0, 3}) {
        const ir::Graph graph = make();
        passes::PipelineOptions options;
        options.context.opt_level = level;
        options.context.layout = passes::bind_desired_layout(layout_of(layout), graph);
        options.disabled = {"fuse_operators"};
        std::vector<std::string> ran;
        const ir::Graph result = passes::run_pipeline(graph, options, ran);
        small_nets::expect_same(graph, result);
        EXPECT_EQ(count(result, "conv_blocked") + count(result, "conv_first") + count(result, "to_blocked"),
                  0)
            << name << " " << layout << " " << level;
        EXPECT_EQ(laid_out(result, std::string(layout) == "NCHW"), 0)
            << name << " " << layout << " " << level;
        EXPECT_EQ(std::count(ran.begin(), ran.end(), "convert_layout"), 1);
      }
    }
  }
  // What is not asked for has blocks.
  const ir::Graph graph = small_nets::residual_net();
  passes::PipelineOptions options;
  options.context.layout = passes::bind_desired_layout(layout_of("NCHW", {"max_pool"}), graph);
  std::vector<std::string> ran;
  options.disabled = {"fuse_operators"};
  EXPECT_GT(count(passes::run_pipeline(graph, options, ran), "conv_blocked"), 0);
}

TEST(ConvertLayout, DoesNotRunUnasked) {
  std::vector<std::string> ran;
  passes::run_pipeline(small_nets::residual_net(), {}, ran);
  EXPECT_EQ(std::count(ran.begin(), ran.end(), "convert_layout"), 0);
}

TEST(ConvertLayout, RefusesWhatWouldDoNothing) {
  const auto refusal = [](const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.message();
    }
    return std::string();
  };
  EXPECT_EQ(
      refusal([] { layout_of("NHWC", {"convolution"}); }),
      "desired layout: there is no operator \"convolution\" of graphs; their names are as conv and max_pool");
  EXPECT_EQ(refusal([] { layout_of("NHWC", {"matmul"}); }),
            "desired layout: operator matmul is the same in every layout");
  EXPECT_EQ(refusal([] { layout_of("NCHW8c"); }), "the desired layout is \"NCHW8c\", expected NCHW or NHWC");
  EXPECT_EQ(refusal([] { passes::parse_desired_layout("", {"conv"}, ops::standard_ops()); }),
            "operators of a desired layout are given, but no layout: NCHW or NHWC");
  Net net;
  const ir::Graph graph = net.finish({net.conv_relu(net.input({1, 3, 8, 8}), 16, 3)});
  EXPECT_EQ(refusal([&] { passes::bind_desired_layout(layout_of("NHWC", {"lrn"}), graph); }),
            "desired layout: the model has no operator lrn; it has conv, relu");
  Net flat;
  const ir::Graph dense = flat.finish({flat.dense(flat.input({2, 8}), 4)});
  EXPECT_NE(
      refusal([&] { passes::bind_desired_layout(layout_of("NHWC"), dense); }).find("no operator that has"),
      std::string::npos);
  passes::PipelineOptions options;
  options.context.layout = passes::bind_desired_layout(layout_of("NHWC"), graph);
  options.disabled = {"convert_layout"};
  std::vector<std::string> ran;
  EXPECT_NE(refusal([&] { passes::run_pipeline(graph, options, ran); }), "");
}

}  // namespace
}  // namespace tensormill
