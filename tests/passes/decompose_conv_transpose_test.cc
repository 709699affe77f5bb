/// Transposed convolutions as convolutions: the same answers in all forms, and nothing left of the old ones.
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill::decompose_conv_transpose_test {
namespace {

using small_nets::count;
using small_nets::expect_same;
using small_nets::Net;
using Ints = std::vector<int64_t>;

passes::PassContext context_of(int bits) {
  passes::PassContext context;
  context.facts.vector_bits = bits;
  return context;
}

/// Decomposed, and then blocked, each compared with `graph`; the decomposed graph.
ir::Graph decomposed(const ir::Graph& graph, int bits = 512) {
  const ir::Graph result = passes::decompose_conv_transpose(graph, context_of(bits));
  expect_same(graph, result);
  expect_same(graph, passes::alter_layout(result, context_of(bits)));
  return result;
}

struct Form {
  const char* name;
  Shape x, w;  ///< [N,C,...], [C,M/group,...]
  ir::Attrs attrs;
  int64_t bias = 0;  ///< its channels; 0: none
};

ir::Graph net_of(const Form& form) {
  Net net;
  std::vector<ir::ValueId> inputs = {net.input(form.x), net.constant(form.w)};
  if (form.bias != 0) inputs.push_back(net.constant({form.bias}));
  return net.finish({net.add("conv_transpose", inputs, form.attrs)});
}

std::vector<Form> forms() {
  const auto strided = [](Ints strides, Ints pads) {
    return ir::Attrs{{"strides", std::move(strides)}, {"pads", std::move(pads)}};
  };
  const Ints none(4, 0), ones(4, 1);
  ir::Attrs extra = strided({2, 2}, ones), grouped = strided({2, 2}, ones), dilated = strided({2, 3}, none);
  extra.set("output_padding", Ints{1, 1});
  grouped.set("group", int64_t{2});
  dilated.set("dilations", Ints{2, 1});
  ir::Attrs depthwise = strided({2, 2}, ones);
  depthwise.set("group", int64_t{6});
  ir::Attrs many = strided({5, 5}, {2, 3, 3, 2}), wide = strided({5, 6}, none);
  many.set("group", int64_t{6});
  wide.set("group", int64_t{2});
  return {
      {"no stride", {1, 3, 4, 5}, {3, 2, 3, 3}, {}},
      {"kernel as the stride", {1, 5, 4, 3}, {5, 3, 2, 2}, strided({2, 2}, none), 3},
      {"to one channel", {2, 20, 3, 3}, {20, 1, 2, 2}, strided({2, 2}, none), 1},
      {"to ragged blocks", {1, 18, 3, 4}, {18, 20, 2, 2}, strided({2, 2}, none), 20},
      {"to whole blocks", {1, 16, 3, 4}, {16, 32, 4, 4}, strided({2, 2}, ones)},
      {"zeros between", {1, 4, 4, 3}, {4, 9, 3, 3}, extra, 9},
      {"kernel below the stride", {1, 3, 3, 4}, {3, 4, 1, 2}, strided({3, 3}, none), 4},
      {"unequal strides and pads", {1, 3, 5, 4}, {3, 4, 5, 3}, strided({1, 2}, {2, 0, 1, 1})},
      {"pads beyond a block", {1, 3, 5, 5}, {3, 4, 6, 6}, strided({2, 2}, {4, 3, 2, 5})},
      {"a pad as wide as the kernel", {1, 2, 6, 6}, {2, 2, 3, 3}, strided({2, 2}, {3, 3, 3, 3})},
      {"dilated", {1, 2, 4, 4}, {2, 3, 3, 2}, dilated},
      {"grouped", {1, 6, 3, 4}, {6, 2, 4, 4}, grouped, 4},
      {"one channel a group", {1, 6, 4, 4}, {6, 1, 4, 4}, depthwise, 6},
      {"one channel a group, many phases", {1, 6, 3, 4}, {6, 1, 10, 10}, many, 6},
      {"grouped, many phases", {1, 6, 3, 3}, {6, 2, 5, 7}, wide, 4},
      {"1-d", {2, 3, 7}, {3, 4, 8}, strided({4}, {2, 2}), 4},
      {"3-d", {1, 2, 3, 2, 3}, {2, 3, 2, 2, 3}, strided({2, 1, 2}, Ints(6, 0))},
  };
}

TEST(DecomposeConvTranspose, AllFormsGiveTheSameAnswers) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const ir::Graph graph = net_of(form);
    for (const int bits : {128, 512}) EXPECT_EQ(count(decomposed(graph, bits), "conv_transpose"), 0);
  }
}

TEST(DecomposeConvTranspose, ManyPhasesAreOneConvolution) {
  const ir::Graph graph = decomposed(net_of({"", {1, 4, 3, 3}, {4, 2, 2, 2}, {{"strides", Ints{2, 2}}}, 2}));
  EXPECT_EQ(count(graph, "conv"), 1);
  EXPECT_EQ(count(graph, "concat"), 0);
}

TEST(DecomposeConvTranspose, ProductsWithZerosAreLeftOut) {
  const ir::Graph graph = decomposed(net_of({"", {1, 4, 3, 3}, {4, 2, 3, 3}, {{"strides", Ints{2, 2}}}}));
  EXPECT_EQ(count(graph, "conv"), 4);
  EXPECT_EQ(count(graph, "concat"), 1);
}

TEST(DecomposeConvTranspose, ResultsStayInBlocks) {
  for (const int64_t channels : {16, 24, 40}) {
    Net net;
    ir::ValueId x = net.conv(net.input({1, 16, 4, 4}), 16, 3);
    x = net.add("conv_transpose", {x, net.constant({16, channels, 2, 2}), net.constant({channels})},
                {{"strides", Ints{2, 2}}});
    const ir::Graph graph = net.finish({net.conv(net.add("relu", {x}), 16, 3)});
    const ir::Graph blocked = passes::alter_layout(decomposed(graph), context_of(512));
    EXPECT_EQ(count(blocked, "to_blocked") + count(blocked, "from_blocked"), 2) << channels << " channels";
    EXPECT_EQ(count(blocked, "gather_channels"), 0);
  }
}

TEST(DecomposeConvTranspose, HugeKernelsOfZerosAreLeftAlone) {
  const ir::Graph graph = passes::decompose_conv_transpose(
      net_of({"", {1, 2, 2, 2}, {2, 2, 1, 1}, {{"strides", Ints{9, 9}}}}), context_of(512));
  EXPECT_EQ(count(graph, "conv_transpose"), 1);
}

TEST(DecomposeConvTranspose, WeightsOfARunAreLeftAlone) {
  Net net;
  const ir::ValueId w = net.input({2, 2, 2, 2});
  const ir::Graph graph =
      net.finish({net.add("conv_transpose", {net.input({1, 2, 3, 3}), w}, {{"strides", Ints{2, 2}}})});
  EXPECT_EQ(count(passes::decompose_conv_transpose(graph, context_of(512)), "conv_transpose"), 1);
}

TEST(FoldBatchNorm, GoesIntoTransposedConvolutions) {
  for (const int64_t groups : {1, 2}) {
    Net net;
    ir::ValueId x = net.add("conv_transpose",
                            {net.input({1, 4, 3, 3}), net.constant({4, 6 / groups, 2, 2}), net.constant({6})},
                            {{"strides", Ints{2, 2}}, {"group", groups}});
    const ir::ValueId variance = net.graph.add_constant("variance", Tensor::zeros(DType::kFloat32, {6}));
    x = net.add("batch_norm", {x, net.constant({6}), net.constant({6}), net.constant({6}), variance},
                {{"epsilon", 0.5}});
    const ir::Graph graph = net.finish({x});
    const ir::Graph folded = passes::fold_batch_norm(graph, context_of(512));
    expect_same(graph, folded);
    EXPECT_EQ(count(folded, "batch_norm") + count(folded, "mul"), 0);
  }
}

}  // namespace
}  // namespace tensormill::decompose_conv_transpose_test
