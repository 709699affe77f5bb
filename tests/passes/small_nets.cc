#include "tests/passes/small_nets.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/bind_symbols.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"

namespace tensormill::small_nets {

namespace {

/// Even numbers in [-1, 1), from a linear congruential generator (Knuth's MMIX constants).
Tensor noise(const Shape& shape, uint64_t seed, double scale) {
  Tensor tensor(DType::kFloat32, shape);
  uint64_t state = seed * 2654435761u + 1;
  for (float& value : tensor.values<float>()) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(scale * (static_cast<double>(state >> 40) / static_cast<double>(1 << 23) - 1));
  }
  return tensor;
}

}  // namespace

Net::Net() : graph(ops::standard_ops()) {}

ir::ValueId Net::input(const Shape& shape, const std::string& free) {
  if (!free.empty() && graph.symbols() == nullptr) graph.set_symbols(std::make_shared<ir::SymbolTable>());
  ir::SymShape extents = shape;
  for (size_t i = 0; i < free.size(); ++i) {
    if (free[i] != '.') extents[i] = graph.symbols()->add(std::string(1, free[i]), shape[i]);
  }
  return graph.add_input(graph.unique_name("x"), {DType::kFloat32, extents});
}

ir::ValueId Net::image(const Shape& shape, bool is_free) { return input(shape, is_free ? "N.HW" : ""); }

ir::ValueId Net::constant(const Shape& shape, double scale) {
  return graph.add_constant(graph.unique_name("c"), noise(shape, ++seed_, scale));
}

ir::ValueId Net::add(const std::string& op, std::vector<ir::ValueId> inputs, ir::Attrs attrs) {
  return graph.add_node(op, std::move(inputs), std::move(attrs), {graph.unique_name(op)})[0];
}

ir::ValueId Net::conv(ir::ValueId x, int64_t channels, int64_t kernel, int64_t stride, int64_t group) {
  const int64_t inputs = shape(x)[1] / group;
  const double scale = std::sqrt(3.0 / static_cast<double>(inputs * kernel * kernel));
  const ir::ValueId weights = constant({channels, inputs, kernel, kernel}, scale);
  const int64_t pad = kernel / 2;
  const ir::Attrs attrs{
      {"strides", Shape{stride, stride}}, {"pads", Shape{pad, pad, pad, pad}}, {"group", group}};
  return add("conv", {x, weights, constant({channels}, 0.5)}, attrs);
}

ir::ValueId Net::conv_relu(ir::ValueId x, int64_t channels, int64_t kernel, int64_t stride) {
  return add("relu", {conv(x, channels, kernel, stride)});
}

ir::ValueId Net::max_pool(ir::ValueId x) {
  return add("max_pool", {x},
             {{"kernel", Shape{3, 3}}, {"strides", Shape{2, 2}}, {"pads", Shape{1, 1, 1, 1}}});
}

ir::ValueId Net::global_pool(ir::ValueId x) {
  return add("reduce_mean", {x}, {{"axes", Shape{2, 3}}, {"keepdims", int64_t{1}}});
}

std::vector<ir::ValueId> Net::split_in_two(ir::ValueId x) {
  const int64_t half = shape(x)[1] / 2;
  return graph.add_node("split", {x}, {{"axis", int64_t{1}}, {"sizes", Shape{half, half}}});
}

ir::ValueId Net::shuffle_in_two(ir::ValueId x) {
  const ir::SymShape from = shape(x);
  ir::ValueId y = add("reshape", {x}, {{"shape", ir::SymShape{from[0], 2, from[1] / 2, from[2], from[3]}}});
  y = add("transpose", {y}, {{"perm", Shape{0, 2, 1, 3, 4}}});
  return add("reshape", {y}, {{"shape", from}});
}

ir::ValueId Net::dense(ir::ValueId x, int64_t features) {
  const ir::SymShape from = shape(x);
  const int64_t channels = num_elements(ir::SymShape(from.begin() + 1, from.end()));
  const ir::ValueId flat = add("reshape", {x}, {{"shape", ir::SymShape{from[0], channels}}});
  return add("matmul", {flat, constant({channels, features}, 0.1)});
}

ir::Graph Net::finish(std::vector<ir::ValueId> outputs) {
  graph.set_outputs(std::move(outputs));
  return std::move(graph);
}

ir::Graph residual_net_of(bool is_free) {
  Net net;
  ir::ValueId x = net.max_pool(net.conv_relu(net.image({1, 3, 24, 24}, is_free), 32, 7, 2));
  for (const int64_t stride : {1, 2, 1}) {
    ir::ValueId y = net.conv_relu(net.conv_relu(x, 16, 1), 16, 3, stride);
    y = net.conv(y, 64, 1);
    const bool same = ir::same(net.shape(x), net.shape(y));
    x = net.add("relu", {net.add("add", {y, same ? x : net.conv(x, 64, 1, stride)})});
  }
  return net.finish({net.dense(net.global_pool(x), 10)});
}

ir::Graph mobile_net_of(bool is_free) {
  Net net;
  const ir::Attrs six{{"min", 0.0}, {"max", 6.0}};
  ir::ValueId x = net.add("clip", {net.conv(net.image({1, 3, 20, 20}, is_free), 24, 3, 2)}, six);
  for (const int64_t stride : {2, 1}) {
    const int64_t hidden = net.shape(x)[1] * 2;
    ir::ValueId y = net.add("clip", {net.conv(x, hidden, 1)}, six);
    y = net.add("clip", {net.conv(y, hidden, 3, stride, hidden)}, six);
    y = net.conv(y, 24, 1);
    x = stride == 1 ? net.add("add", {x, y}) : y;
  }
  return net.finish({net.dense(net.global_pool(net.conv_relu(x, 48, 1)), 10)});
}

ir::Graph squeeze_net() {
  Net net;
  ir::ValueId x = net.max_pool(net.conv_relu(net.input({1, 3, 24, 24}), 16, 3, 2));
  for (int i = 0; i < 2; ++i) {
    const ir::ValueId narrow = net.conv_relu(x, 16, 1);
    x = net.add("concat", {net.conv_relu(narrow, 32, 1), net.conv_relu(narrow, 32, 3)},
                {{"axis", int64_t{1}}});
  }
  x = net.conv_relu(net.max_pool(x), 10, 1);
  x = net.add("avg_pool", {x}, {{"kernel", Shape{net.shape(x)[2], net.shape(x)[3]}}});
  return net.finish({net.add("softmax", {x}, {{"axis", int64_t{1}}})});
}

ir::Graph shuffle_net_of(bool is_free) {
  Net net;
  ir::ValueId x = net.max_pool(net.conv_relu(net.image({1, 3, 24, 24}, is_free), 24, 3, 2));
  const auto branch = [&](ir::ValueId from, int64_t stride) {
    ir::ValueId y = net.conv_relu(from, 29, 1);
    y = net.conv(y, 29, 3, stride, 29);
    return net.conv_relu(y, 29, 1);
  };
  const ir::ValueId side = net.conv_relu(net.conv(x, 24, 3, 2, 24), 29, 1);
  x = net.shuffle_in_two(net.add("concat", {side, branch(x, 2)}, {{"axis", int64_t{1}}}));
  for (int i = 0; i < 3; ++i) {
    const std::vector<ir::ValueId> halves = net.split_in_two(x);
    x = net.shuffle_in_two(net.add("concat", {halves[0], branch(halves[1], 1)}, {{"axis", int64_t{1}}}));
  }
  x = net.conv_relu(x, 40, 1);
  return net.finish({net.dense(net.global_pool(x), 10)});
}

ir::Graph residual_net() { return residual_net_of(false); }
ir::Graph mobile_net() { return mobile_net_of(false); }
ir::Graph shuffle_net() { return shuffle_net_of(false); }

std::vector<Tensor> seeded_inputs(const ir::Graph& graph) {
  std::vector<Tensor> inputs;
  for (const ir::ValueId input : graph.inputs())
    inputs.push_back(noise(graph.value(input).type.shape, 77, 1.0));
  return inputs;
}

int64_t count(const ir::Graph& graph, const std::string& op) {
  int64_t found = 0;
  for (const ir::Node& node : graph.nodes()) {
    found += node.op == op ? 1 : 0;
    if (node.region != nullptr) found += count(*node.region, op);
  }
  return found;
}

double distance(const Tensor& a, const Tensor& b) {
  double difference = 0, largest = 0;
  for (int64_t i = 0; i < b.num_elements(); ++i) {
    const double off = std::fabs(a.element_as_double(i) - b.element_as_double(i));
    difference = std::isfinite(off) ? std::max(difference, off) : INFINITY;
    largest = std::max(largest, std::fabs(b.element_as_double(i)));
  }
  return largest > 0 ? difference / largest : difference;
}

ir::Graph at_hints(const ir::Graph& graph) { return ir::bind_symbols(graph, graph.symbols()->hints()); }

void expect_same(const ir::Graph& before, const ir::Graph& after, double tolerance) {
  ir::verify(after);
  const std::vector<Tensor> inputs = seeded_inputs(before);
  const std::vector<Tensor> expected = ir::evaluate_reference(before, inputs);
  const std::vector<Tensor> actual = ir::evaluate_reference(after, inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(actual[i].shape(), expected[i].shape()) << "output " << i;
    EXPECT_LE(distance(actual[i], expected[i]), tolerance) << "output " << i;
    EXPECT_GT(distance(Tensor::zeros(expected[i].dtype(), expected[i].shape()), expected[i]), 0.5)
        << "output " << i;
  }
}

}  // namespace tensormill::small_nets
