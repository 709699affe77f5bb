/// Patterns of transformers and packed products: recognized as exporters write them, left alone where
/// something differs, and the same answers.
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill {
namespace {

using small_nets::count;
using small_nets::Net;
using Run = ir::Graph (*)(const ir::Graph&, const passes::PassContext&);

/// The pass's result, checked against the graph it came from.
ir::Graph rewritten(const ir::Graph& graph, Run pass, int64_t l2_bytes = 1 << 20) {
  passes::PassContext context;
  context.facts.vector_bits = 512;
  context.facts.l2_bytes = l2_bytes;
  ir::Graph result = pass(graph, context);
  small_nets::expect_same(graph, result);
  return result;
}

ir::ValueId scalar(Net& net, float value) {
  return net.graph.add_constant(net.graph.unique_name("s"),
                                Tensor::from<float>({}, std::span<const float>(&value, 1)));
}

ir::ValueId heads(Net& net, ir::ValueId x, Shape perm) {
  const ir::ValueId split = net.add("reshape", {x}, {{"shape", Shape{2, 5, 3, 8}}});
  return net.add("transpose", {split}, {{"perm", std::move(perm)}});
}

ir::ValueId cast(Net& net, ir::ValueId x, DType to) {
  return net.graph.value(x).type.dtype == to ? x : net.add("cast", {x}, {{"to", to}});
}

/// Attention of three heads over parts of one tensor, which is computed as float32.
ir::Graph attention_net(bool masked, bool scores_are_output, DType dtype = DType::kFloat32) {
  Net net;
  const auto wide = [&net](ir::ValueId value) { return cast(net, value, DType::kFloat32); };
  const ir::ValueId x = cast(net, net.input({2, 5, 72}), dtype);
  const std::vector<ir::ValueId> parts =
      net.graph.add_node("split", {x}, {{"axis", int64_t{2}}, {"sizes", Shape{24, 24, 24}}});
  const ir::ValueId q = heads(net, parts[0], {0, 2, 1, 3}), k = heads(net, parts[1], {0, 2, 3, 1}),
                    v = heads(net, parts[2], {0, 2, 1, 3});
  const ir::ValueId product = net.add("matmul", {wide(q), wide(k)}, {});
  ir::ValueId logits = net.add("div", {product, scalar(net, 2.5f)}, {});
  if (masked) logits = net.add("add", {logits, net.input({2, 1, 1, 5})}, {});
  const ir::ValueId shares = net.add("softmax", {logits}, {{"axis", int64_t{3}}});
  const ir::ValueId mix = cast(net, net.add("matmul", {shares, wide(v)}, {}), dtype);
  const ir::ValueId back = net.add("transpose", {mix}, {{"perm", Shape{0, 2, 1, 3}}});
  const ir::ValueId out = wide(net.add("reshape", {back}, {{"shape", Shape{2, 5, 24}}}));
  net.graph.set_outputs(scores_are_output ? std::vector<ir::ValueId>{out, shares}
                                          : std::vector<ir::ValueId>{out});
  return net.graph;
}

TEST(FuseAttention, TakesInHeadsSplitScaleAndMask) {
  for (const bool masked : {true, false}) {
    const ir::Graph graph = rewritten(attention_net(masked, false), &passes::fuse_attention);
    EXPECT_EQ(count(graph, "attention"), 1);
    EXPECT_EQ(graph.nodes().size(), 1u);
  }
}

TEST(FuseAttention, TakesInCastsOfNarrowFloats) {
  for (const bool masked : {true, false}) {
    const ir::Graph before = attention_net(masked, false, DType::kFloat16);
    const ir::Graph graph = passes::fuse_attention(before, passes::PassContext());
    small_nets::expect_same(before, graph, 1e-3);
    EXPECT_EQ(count(graph, "attention"), 1);
    EXPECT_EQ(graph.nodes().size(), 3u);
  }
}

TEST(FuseAttention, LeavesScoresThatAreReadElsewhere) {
  const ir::Graph graph = rewritten(attention_net(true, true), &passes::fuse_attention);
  EXPECT_EQ(count(graph, "attention"), 0);
}

/// One picture's keys for all rows of queries: their products broadcast, and attention would not.
TEST(FuseAttention, LeavesKeysOfAnotherBatch) {
  Net net;
  const auto split = [&](const Shape& shape, Shape perm) {
    const ir::ValueId x = net.input({shape[0], shape[1], shape[2] * shape[3]});
    return net.add("transpose", {net.add("reshape", {x}, {{"shape", shape}})}, {{"perm", std::move(perm)}});
  };
  const ir::ValueId q = split({2, 5, 3, 8}, {0, 2, 1, 3});
  const ir::ValueId k = split({1, 7, 3, 8}, {0, 2, 3, 1}), v = split({1, 7, 3, 8}, {0, 2, 1, 3});
  const ir::ValueId shares = net.add("softmax", {net.add("matmul", {q, k}, {})}, {{"axis", int64_t{3}}});
  const ir::ValueId mix = net.add("matmul", {shares, v}, {});
  const ir::ValueId back = net.add("transpose", {mix}, {{"perm", Shape{0, 2, 1, 3}}});
  net.graph.set_outputs({net.add("reshape", {back}, {{"shape", Shape{2, 5, 24}}})});
  EXPECT_EQ(count(rewritten(net.graph, &passes::fuse_attention), "attention"), 0);
}

/// How Q, K and V are cut out of one product.
struct Cut {
  Shape parts = {4, 5, 3, 2, 8};        ///< of a row's columns
  Shape perm = {2, 0, 3, 1, 4};         ///< to [3,N,heads,S,width]
  bool gathers = false;                 ///< places of an axis, not parts of a split
  double of_q = 1, of_k = 1, of_v = 1;  ///< what each is multiplied by
  int64_t rows = 5;                     ///< of K and V
  bool has_bias = false, has_windows = false;
};

/// Attention of two heads of four windows of one image, as vision transformers are exported.
ir::Graph window_net(const Cut& cut) {
  Net net;
  const ir::ValueId x = net.input({4, 5, 48});
  const ir::ValueId all =
      net.add("transpose", {net.add("reshape", {x}, {{"shape", cut.parts}})}, {{"perm", cut.perm}});
  std::vector<ir::ValueId> parts;
  if (!cut.gathers) {
    parts = net.graph.add_node("split", {all}, {{"axis", int64_t{0}}, {"sizes", Shape{1, 1, 1}}});
    for (ir::ValueId& part : parts) part = net.add("reshape", {part}, {{"shape", Shape{4, 2, 5, 8}}});
  } else {
    for (const int64_t place : {0, 1, -1}) {
      const ir::ValueId index =
          net.graph.add_constant(net.graph.unique_name("i"), Tensor::from<int64_t>({}, std::span(&place, 1)));
      parts.push_back(net.add("gather", {all, index}, {{"axis", int64_t{0}}}));
    }
  }
  const auto times = [&](ir::ValueId value, double by) {
    return by == 1 ? value : net.add("mul", {value, scalar(net, static_cast<float>(by))});
  };
  const auto first_rows = [&](ir::ValueId value) {
    const Shape starts(4, 0), extents = {4, 2, cut.rows, 8};
    return cut.rows == 5 ? value : net.add("slice", {value}, {{"starts", starts}, {"extents", extents}});
  };
  const ir::ValueId k =
      net.add("transpose", {times(first_rows(parts[1]), cut.of_k)}, {{"perm", Shape{0, 1, 3, 2}}});
  ir::ValueId scores = net.add("matmul", {times(parts[0], cut.of_q), k});
  if (cut.has_bias) scores = net.add("add", {scores, net.constant({1, 2, 5, 5})});
  if (cut.has_windows) {
    const ir::ValueId image = net.add("reshape", {scores}, {{"shape", Shape{1, 4, 2, 5, 5}}});
    const ir::ValueId masked = net.add("add", {net.constant({1, 4, 1, 5, 5}), image});
    scores = net.add("reshape", {masked}, {{"shape", Shape{4, 2, 5, 5}}});
  }
  const ir::ValueId shares = net.add("softmax", {scores}, {{"axis", int64_t{3}}});
  const ir::ValueId mix = net.add("matmul", {shares, times(first_rows(parts[2]), cut.of_v)});
  const ir::ValueId back = net.add("transpose", {mix}, {{"perm", Shape{0, 2, 1, 3}}});
  return net.finish({net.add("reshape", {back}, {{"shape", Shape{4, 5, 16}}})});
}

TEST(FuseAttention, FollowsHeadsThroughWhateverMovesThem) {
  for (const bool gathers : {false, true}) {
    for (const bool has_windows : {false, true}) {
      const Cut cut = {
          .gathers = gathers, .of_q = 0.5, .of_k = 0.25, .has_bias = true, .has_windows = has_windows};
      const ir::Graph graph = rewritten(window_net(cut), &passes::fuse_attention);
      EXPECT_EQ(count(graph, "attention"), 1);
      EXPECT_EQ(count(graph, "transpose") + count(graph, "matmul") + count(graph, "mul"), 0);
    }
  }
}

TEST(FuseAttention, LeavesHeadsThatAreNoColumnsSideBySide) {
  const Cut apart = {.parts = {4, 5, 2, 3, 8}, .perm = {3, 0, 2, 1, 4}};
  const Cut scaled = {.of_v = 0.5};
  const Cut fewer = {.rows = 3};
  for (const Cut& cut : {apart, scaled, fewer})
    EXPECT_EQ(count(rewritten(window_net(cut), &passes::fuse_attention), "attention"), 0);
}

ir::Graph layer_norm_net(Shape axes, bool affine) {
  Net net;
  const ir::ValueId x = net.input({3, 4, 7});
  const ir::Attrs mean{{"axes", std::move(axes)}, {"keepdims", int64_t{1}}};
  const ir::ValueId centered = net.add("sub", {x, net.add("reduce_mean", {x}, mean)}, {});
  const ir::ValueId variance = net.add("reduce_mean", {net.add("mul", {centered, centered}, {})}, mean);
  const ir::ValueId deviation = net.add("sqrt", {net.add("add", {variance, scalar(net, 1e-3f)}, {})}, {});
  ir::ValueId out = net.add("div", {centered, deviation}, {});
  if (affine) {
    out = net.add("mul", {out, net.constant({7}, 1)}, {});
    out = net.add("add", {net.constant({7}, 1), out}, {});
  }
  net.graph.set_outputs({out});
  return net.graph;
}

TEST(FuseLayerNorm, TakesInScaleAndBias) {
  const ir::Graph graph = rewritten(layer_norm_net({-1}, true), &passes::fuse_layer_norm);
  EXPECT_EQ(count(graph, "layer_norm"), 1);
  EXPECT_EQ(graph.nodes().size(), 1u);
}

TEST(FuseLayerNorm, NormalizesOverTheLastAxesOnly) {
  EXPECT_EQ(count(rewritten(layer_norm_net({1, 2}, false), &passes::fuse_layer_norm), "layer_norm"), 1);
  EXPECT_EQ(count(rewritten(layer_norm_net({1}, false), &passes::fuse_layer_norm), "layer_norm"), 0);
}

ir::Graph gelu_net(bool half_first, float root) {
  Net net;
  const ir::ValueId x = net.input({3, 7});
  const ir::ValueId erf = net.add("erf", {net.add("div", {x, scalar(net, root)}, {})}, {});
  const ir::ValueId sum = net.add("add", {erf, scalar(net, 1)}, {});
  const ir::ValueId half = scalar(net, 0.5f);
  const ir::ValueId out = half_first ? net.add("mul", {x, net.add("mul", {half, sum}, {})}, {})
                                     : net.add("mul", {net.add("mul", {x, sum}, {}), half}, {});
  net.graph.set_outputs({out});
  return net.graph;
}

TEST(FuseGelu, InEitherOrderOfTheProduct) {
  for (const bool half_first : {true, false}) {
    const ir::Graph graph = rewritten(gelu_net(half_first, 1.41421356f), &passes::fuse_gelu);
    EXPECT_EQ(count(graph, "gelu"), 1);
    EXPECT_EQ(graph.nodes().size(), 1u);
  }
}

TEST(FuseGelu, NeedsTheRootOfTwo) {
  EXPECT_EQ(count(rewritten(gelu_net(true, 1.5f), &passes::fuse_gelu), "gelu"), 0);
}

ir::Graph product_net(bool transposed, bool bias_is_row) {
  Net net;
  const ir::ValueId x = net.input({2, 3, 9});
  const ir::ValueId matrix = net.constant(transposed ? Shape{21, 9} : Shape{9, 21}, 1);
  const ir::ValueId product = net.add("matmul", {x, matrix}, {{"transpose_b", int64_t{transposed}}});
  const ir::ValueId bias = net.constant(bias_is_row ? Shape{1, 21} : Shape{3, 21}, 1);
  net.graph.set_outputs({net.add("add", {bias, product}, {})});
  return net.graph;
}

TEST(PackMatmul, TakesInTheBiasOfAColumn) {
  for (const bool transposed : {true, false}) {
    const ir::Graph graph = rewritten(product_net(transposed, true), &passes::pack_matmul);
    EXPECT_EQ(count(graph, "matmul_packed"), 1);
    EXPECT_EQ(graph.nodes().size(), 1u);
  }
}

TEST(PackMatmul, LeavesOtherSumsBehindIt) {
  const ir::Graph graph = rewritten(product_net(false, false), &passes::pack_matmul);
  EXPECT_EQ(count(graph, "matmul_packed"), 1);
  EXPECT_EQ(count(graph, "add"), 1);
}

/// 8 rows of 768: 24 KB, in parts of 12 or 8 KB.
TEST(PackMatmul, CutsADepthWhoseRowsDoNotStayInTheCache) {
  for (const bool transposed : {true, false}) {
    Net net;
    const ir::ValueId x = net.input({2, 4, 768});
    const ir::ValueId matrix = net.constant(transposed ? Shape{21, 768} : Shape{768, 21}, 1);
    const ir::ValueId product = net.add("matmul", {x, matrix}, {{"transpose_b", int64_t{transposed}}});
    net.graph.set_outputs({net.add("add", {product, net.constant({21}, 1)}, {})});
    EXPECT_EQ(count(rewritten(net.graph, &passes::pack_matmul, 24 << 12), "matmul_packed"), 1);
    EXPECT_EQ(count(rewritten(net.graph, &passes::pack_matmul, 12 << 12), "matmul_packed"), 2);
    EXPECT_EQ(count(rewritten(net.graph, &passes::pack_matmul, 8 << 12), "matmul_packed"), 3);
    EXPECT_EQ(count(rewritten(net.graph, &passes::pack_matmul, 1 << 12), "matmul_packed"), 1)
        << "parts that are too short to pay";
  }
}

}  // namespace
}  // namespace tensormill
