/// Quantized layers on the integers: which ones are taken, and that their bytes are those of exact sums times
/// one factor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/pass.h"
#include "tests/passes/small_nets.h"

namespace tensormill::integer_products_test {
namespace {

using small_nets::count;

Tensor bytes(DType dtype, Shape shape, int64_t step) {
  Tensor tensor(dtype, std::move(shape));
  const int64_t low = dtype == DType::kInt8 ? -128 : 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_element_int(i, low + i * step % 256);
  return tensor;
}

struct Layer {
  DType data = DType::kUInt8;
  int64_t zero = 0;
  bool relu = false;
  bool padded = true;
  int64_t channels = 16;
  int64_t group = 1;
  bool float_bias = false;
  DType weights = DType::kInt8;
};

/// quantize(conv(dequantize(x), dequantize(w), dequantize(b))), of which all is what the importer writes.
class Net {
public:
  explicit Net(const Layer& layer) : layer_(layer), graph_(ops::standard_ops()) {
    const ir::ValueId x = graph_.add_input("x", {layer.data, {1, layer.channels, 5, 6}});
    const ir::ValueId data = scaled(x, layer.zero, number(0.25));
    Tensor scales(DType::kFloat32, {kOutputs, 1, 1, 1});
    for (int64_t i = 0; i < kOutputs; ++i)
      scales.set_element(i, std::ldexp(1.0, static_cast<int>(i % 3) - 6));
    const Shape shape = {kOutputs, layer.channels / layer.group, 3, 3};
    const ir::ValueId w = scaled(graph_.add_constant("w", bytes(layer.weights, shape, 37)), 0,
                                 graph_.add_constant("scales", scales));
    const int64_t pad = layer.padded ? 1 : 0;
    const ir::Attrs attrs{{"pads", std::vector<int64_t>(4, pad)}, {"group", layer.group}};
    ir::ValueId value = node("conv", {data, w, bias(scales)}, attrs);
    if (layer.relu) value = node("relu", {value});
    value = node("round", {node("div", {value, number(2)})});
    value = node("add",
                 {value, node("cast", {graph_.add_constant("z", zero_point())}, {{"to", DType::kFloat32}})});
    graph_.set_outputs({node("cast", {value}, {{"to", layer.data}})});
  }
  const ir::Graph& graph() const { return graph_; }

private:
  static constexpr int64_t kOutputs = 32;

  ir::ValueId node(const std::string& op, std::vector<ir::ValueId> inputs, const ir::Attrs& attrs = {}) {
    return graph_.add_node(op, std::move(inputs), attrs)[0];
  }
  ir::ValueId number(float value) {
    return graph_.add_constant(graph_.unique_name("number"),
                               Tensor::from<float>({}, std::vector<float>{value}));
  }
  Tensor zero_point() const {
    Tensor zero(layer_.data, {});
    zero.set_element_int(0, layer_.zero);
    return zero;
  }
  ir::ValueId scaled(ir::ValueId q, int64_t zero, ir::ValueId scale) {
    const ir::ValueId wide = node("cast", {q}, {{"to", DType::kFloat32}});
    return node("mul", {node("sub", {wide, number(static_cast<float>(zero))}), scale});
  }
  ir::ValueId bias(const Tensor& scales) {
    Tensor whole(DType::kInt32, {kOutputs}), units(DType::kFloat32, {kOutputs});
    for (int64_t i = 0; i < kOutputs; ++i) {
      whole.set_element_int(i, 100 * i - 500);
      units.set_element(i, scales.element_as_double(i) * (layer_.float_bias ? 0.5 : 0.25));
    }
    const ir::ValueId wide = node("cast", {graph_.add_constant("b", whole)}, {{"to", DType::kFloat32}});
    return node("mul", {wide, graph_.add_constant("units", units)});
  }

  Layer layer_;
  ir::Graph graph_;
};

ir::Graph lowered(const ir::Graph& graph, bool dot4) {
  passes::PassContext context;
  context.facts.vector_bits = 256;
  context.facts.dot4 = dot4;
  ir::Graph result = passes::integer_products(graph, context);
  ir::verify(result);
  return result;
}

/// All scales are powers of two, so that float32 has the exact sums as well: the same bytes, in blocks too.
bool becomes_integer(const Layer& layer) {
  const Net net(layer);
  const Tensor x = bytes(layer.data, {1, layer.channels, 5, 6}, 101);
  const Tensor expected = ir::evaluate_reference(net.graph(), {x})[0];
  const ir::Graph graph = lowered(net.graph(), true);
  passes::PassContext context;
  context.facts.vector_bits = 256;
  const ir::Graph blocked = passes::alter_layout(passes::fold_constants(graph, context), context);
  for (const ir::Graph* each : {&graph, &blocked}) {
    const Tensor actual = ir::evaluate_reference(*each, {x})[0];
    EXPECT_EQ(actual.dtype(), layer.data);
    for (int64_t i = 0; i < expected.num_elements(); ++i)
      EXPECT_EQ(actual.element_as_int(i), expected.element_as_int(i)) << "element " << i;
  }
  const int64_t found = count(graph, "conv_integer");
  EXPECT_EQ(count(blocked, "conv_integer"), 0);
  EXPECT_EQ(count(blocked, "bytes_to_words"), found);
  // Weights that do not fit int8 are moved, and what that adds is taken off by another one.
  return found == (layer.weights == DType::kUInt8 ? 2 : 1);
}

TEST(IntegerProducts, ConvolutionsGiveTheSameBytes) {
  EXPECT_TRUE(becomes_integer({}));
  EXPECT_TRUE(becomes_integer({.zero = 114, .relu = true}));
  EXPECT_TRUE(becomes_integer({.zero = 114, .padded = false}));
  EXPECT_TRUE(becomes_integer({.data = DType::kInt8, .zero = -5}));
  EXPECT_TRUE(becomes_integer({.data = DType::kInt8, .zero = 0, .relu = true}));
  EXPECT_TRUE(becomes_integer({.relu = true, .float_bias = true}));
  EXPECT_TRUE(becomes_integer({.zero = 3, .group = 2}));
  EXPECT_TRUE(becomes_integer({.zero = 1, .channels = 21}));
  EXPECT_TRUE(becomes_integer({.zero = 114, .relu = true, .weights = DType::kUInt8}));
  EXPECT_TRUE(becomes_integer({.data = DType::kInt8, .zero = -5, .padded = false, .weights = DType::kUInt8}));
}

TEST(IntegerProducts, LeavesAloneWhatDoesNotFit) {
  EXPECT_FALSE(becomes_integer({.channels = 3})) << "the first layer has no blocks";
  EXPECT_FALSE(becomes_integer({.group = 16})) << "depthwise";
  EXPECT_FALSE(becomes_integer({.group = 2, .weights = DType::kUInt8}))
      << "weights past int8, of a group each";
  EXPECT_EQ(count(lowered(Net({}).graph(), false), "conv_integer"), 0) << "no instruction";
}

/// (q - zero) * 0.5 in the pass's own terms.
ir::ValueId dequantize(ir::Graph& graph, ir::ValueId q, float zero) {
  const auto number = [&](float value) {
    return graph.add_constant(graph.unique_name("n"), Tensor::from<float>({}, std::vector<float>{value}));
  };
  const ir::ValueId wide = graph.add_node("cast", {q}, {{"to", DType::kFloat32}})[0];
  return graph.add_node("mul", {graph.add_node("sub", {wide, number(zero)})[0], number(0.5)})[0];
}

TEST(IntegerProducts, MatrixProductsGiveTheSameValues) {
  for (const DType dtype : {DType::kUInt8, DType::kInt8}) {
    for (const int64_t depth : {20, 22}) {
      ir::Graph graph(ops::standard_ops());
      const ir::ValueId x = graph.add_input("x", {dtype, {2, 3, depth}});
      const ir::ValueId w =
          dequantize(graph, graph.add_constant("w", bytes(DType::kInt8, {depth, 21}, 37)), 0);
      graph.set_outputs(graph.add_node("matmul", {dequantize(graph, x, 7), w}));
      const ir::Graph result = lowered(graph, true);
      EXPECT_EQ(count(result, "matmul_packed"), depth % 4 == 0 ? 1 : 0);
      const Tensor data = bytes(dtype, {2, 3, depth}, 101);
      const Tensor expected = ir::evaluate_reference(graph, {data})[0];
      const Tensor actual = ir::evaluate_reference(result, {data})[0];
      for (int64_t i = 0; i < expected.num_elements(); ++i)
        EXPECT_EQ(actual.element_as_double(i), expected.element_as_double(i));
    }
  }
}

TEST(IntegerProducts, BytesLessAnyZeroPointAreMoved) {
  for (const DType dtype : {DType::kUInt8, DType::kInt8}) {
    for (const bool transposed : {false, true}) {
      ir::Graph graph(ops::standard_ops());
      const ir::ValueId x = graph.add_input("x", {dtype, {2, 3, 20}});
      const Shape shape = transposed ? Shape{21, 20} : Shape{20, 21};
      const ir::ValueId w = dequantize(graph, graph.add_constant("w", bytes(DType::kUInt8, shape, 37)), 113);
      graph.set_outputs(
          graph.add_node("matmul", {dequantize(graph, x, 7), w}, {{"transpose_b", int64_t{transposed}}}));
      const ir::Graph result = lowered(graph, true);
      EXPECT_EQ(count(result, "matmul_packed"), 1);
      const Tensor data = bytes(dtype, {2, 3, 20}, 101);
      const Tensor expected = ir::evaluate_reference(graph, {data})[0];
      const Tensor actual = ir::evaluate_reference(result, {data})[0];
      for (int64_t i = 0; i < expected.num_elements(); ++i)
        EXPECT_EQ(actual.element_as_double(i), expected.element_as_double(i));
    }
  }
}

TEST(SinkDequantized, FillsWithTheZeroPointAndTakesRowsOfTables) {
  ir::Graph graph(ops::standard_ops());
  const ir::ValueId at = graph.add_input("at", {DType::kInt64, {2, 3}});
  const ir::ValueId table = dequantize(graph, graph.add_constant("t", bytes(DType::kUInt8, {5, 4}, 37)), 9);
  const ir::ValueId rows = graph.add_node("gather", {table, at}, {{"axis", int64_t{0}}})[0];
  graph.set_outputs(graph.add_node("pad", {rows}, {{"pads", std::vector<int64_t>{0, 1, 0, 0, 0, 2}}}));
  const ir::Graph result = passes::sink_dequantized(graph, {});
  ir::verify(result);
  const auto made_by = [&](const char* op) {
    return std::find_if(result.nodes().begin(), result.nodes().end(),
                        [&](const ir::Node& node) { return node.op == op; });
  };
  for (const char* op : {"gather", "pad"})
    EXPECT_EQ(result.value(made_by(op)->outputs[0]).type.dtype, DType::kUInt8) << op;
  const Tensor data = Tensor::from<int64_t>({2, 3}, std::vector<int64_t>{0, 4, 2, 1, 1, 3});
  const Tensor expected = ir::evaluate_reference(graph, {data})[0];
  const Tensor actual = ir::evaluate_reference(result, {data})[0];
  for (int64_t i = 0; i < expected.num_elements(); ++i)
    EXPECT_EQ(actual.element_as_double(i), expected.element_as_double(i));
}

TEST(SinkDequantized, PoolsAndMovesBytesAndForgetsToQuantizeAgain) {
  ir::Graph graph(ops::standard_ops());
  const ir::ValueId x = graph.add_input("x", {DType::kUInt8, {1, 2, 4, 4}});
  const ir::Attrs pool{{"kernel", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}};
  ir::ValueId value = graph.add_node("max_pool", {dequantize(graph, x, 9)}, pool)[0];
  value = graph.add_node("reshape", {value}, {{"shape", Shape{1, 8}}})[0];
  const auto number = [&](float each) {
    return graph.add_constant(graph.unique_name("n"), Tensor::from<float>({}, std::vector<float>{each}));
  };
  value = graph.add_node("round", {graph.add_node("div", {value, number(0.5)})[0]})[0];
  value = graph.add_node("add", {value, number(9)})[0];
  graph.set_outputs(graph.add_node("cast", {value}, {{"to", DType::kUInt8}}));
  const ir::Graph result = passes::sink_dequantized(graph, {});
  ir::verify(result);
  EXPECT_EQ(result.nodes().size(), 2u);
  const Tensor data = bytes(DType::kUInt8, {1, 2, 4, 4}, 101);
  const Tensor expected = ir::evaluate_reference(graph, {data})[0];
  const Tensor actual = ir::evaluate_reference(result, {data})[0];
  for (int64_t i = 0; i < expected.num_elements(); ++i)
    EXPECT_EQ(actual.element_as_int(i), expected.element_as_int(i));
}

}  // namespace
}  // namespace tensormill::integer_products_test
