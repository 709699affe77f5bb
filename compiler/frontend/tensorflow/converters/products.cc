// Convolutions and matrix products.
#include <algorithm>

#include "compiler/build/maps/conv_pool.h"
#include "compiler/build/moves/moves.h"
#include "compiler/build/numbers/einsum.h"
#include "compiler/frontend/tensorflow/converters/activated.h"
#include "compiler/frontend/tensorflow/converters/windows.h"

namespace tensormill::frontend::tensorflow {

namespace {

Shape fixed_shape(const NodeContext& node, V value, size_t rank) {
  const ir::SymShape shape = node.shape(value);
  if (shape.size() != rank || !shape.is_constant())
    node.invalid("filters of shape " + to_string(shape) + ", expected rank " + std::to_string(rank));
  return shape.hints();
}

int64_t channels_of(const NodeContext& node, V map) {
  const ir::SymInt channels = node.shape(map)[1];
  if (!channels.is_constant()) node.unsupported("operand 0", "its channels are a free dim");
  return channels.hint();
}

/// Filters [spatial...,I,O]: for maps of I channels, or of as many times that many groups.
V conv_of(NodeContext& node, V map, V filters, size_t rank) {
  const Shape w = fixed_shape(node, filters, rank + 2);
  const int64_t channels = channels_of(node, map), inputs = w[rank], outputs = w[rank + 1];
  if (inputs < 1 || channels % inputs != 0)
    node.invalid("an input of " + std::to_string(channels) + " channels for filters of " +
                 std::to_string(inputs));
  build::ConvSpec spec;
  spec.windows =
      windows_of(node, map, {w.begin(), w.begin() + static_cast<std::ptrdiff_t>(rank)},
                 spatial(node, "strides", rank, false), spatial(node, "dilations", rank, true), rank == 2);
  spec.groups = channels / inputs;
  Shape perm{static_cast<int64_t>(rank) + 1, static_cast<int64_t>(rank)}, to{outputs, inputs};
  for (size_t d = 0; d < rank; ++d) {
    perm.push_back(static_cast<int64_t>(d));
    to.push_back(w[d]);
  }
  return build::conv(node, map, node.weights(filters, perm, to), ir::kAbsent, spec);
}

/// Filters [H,W,C,M]: channel c has the outputs c * M ...
V depthwise_of(NodeContext& node, V map, V filters) {
  const Shape w = fixed_shape(node, filters, 4);
  const int64_t channels = channels_of(node, map);
  if (channels != w[2])
    node.invalid("an input of " + std::to_string(channels) + " channels for filters of " +
                 std::to_string(w[2]));
  build::ConvSpec spec;
  spec.windows = windows_of(node, map, {w[0], w[1]}, spatial(node, "strides", 2, false),
                            spatial(node, "dilations", 2, true), true);
  spec.groups = channels;
  return build::conv(node, map, node.weights(filters, {2, 3, 0, 1}, {w[2] * w[3], 1, w[0], w[1]}),
                     ir::kAbsent, spec);
}

}  // namespace

V with_fused(NodeContext& node, V y, int64_t channel, size_t operand) {
  Compose c(node);
  const std::vector<std::string> fused = node.texts("fused_ops");
  const double epsilon = node.real("epsilon", static_cast<double>(1e-4F));
  const double alpha = node.real("leakyrelu_alpha", static_cast<double>(0.2F));
  const auto along_channels = [&](V row) {
    ir::SymShape along(node.shape(y).size(), 1);
    along[static_cast<size_t>(channel)] = num_elements(node.shape(row));
    return c.reshape(row, along);
  };
  for (const std::string& op : fused) {
    if (op == "BiasAdd") {
      y = c.add(y, along_channels(node.input(operand++)));
    } else if (op == "FusedBatchNorm") {
      // scale, offset, mean, variance
      const V variance = node.input(operand + 3);
      const V factor = c.mul(node.input(operand), c.unary("rsqrt", c.plus(variance, epsilon)));
      const V offset = c.sub(node.input(operand + 1), c.mul(node.input(operand + 2), factor));
      y = c.add(c.mul(y, along_channels(factor)), along_channels(offset));
      operand += 4;
    } else if (op == "Add") {
      const V other = node.input(operand++);
      y = c.add(y, channel == 1 && !(node.op() == "_FusedMatMul") ? node.map(other) : other);
    } else if (op == "Relu") {
      y = c.unary("relu", y);
    } else if (op == "Relu6") {
      y = c.clip(y, 0, 6);
    } else if (op == "Elu") {
      y = c.unary("elu", y);
    } else if (op == "Sigmoid") {
      y = c.unary("sigmoid", y);
    } else if (op == "Tanh") {
      y = c.unary("tanh", y);
    } else if (op == "Prelu") {
      const V slope = node.input(operand++);
      y = c.binary("prelu", y,
                   node.rank(slope) == 1 ? along_channels(slope)
                   : channel == 1        ? node.map(slope)
                                         : slope);
    } else if (op == "LeakyRelu") {
      y = node.add("leaky_relu", {y}, {{"alpha", alpha}});
    } else if (op == "GeluApproximate" || op == "GeluExact") {
      y = node.add("gelu", {y}, {{"approximate", std::string(op == "GeluExact" ? "none" : "tanh")}});
    } else {
      node.unsupported("fused_ops", "\"" + op + "\" is not implemented");
    }
  }
  return y;
}

void convert_conv_2d(NodeContext& node) {
  check_rank(node, node.input(0), 4, "the input");
  const V y = conv_of(node, node.map(node.input(0)), node.input(1), 2);
  node.set_output(0, node.unmap(y));
}

void convert_fused_conv_2d(NodeContext& node) {
  check_rank(node, node.input(0), 4, "the input");
  if (node.text("filter_format", "HWIO") != "HWIO")
    node.unsupported("filter_format", "filters in another order than HWIO are not implemented");
  const V y = conv_of(node, node.map(node.input(0)), node.input(1), 2);
  node.set_output(0, node.unmap(with_fused(node, y, 1, 2)));
}

void convert_depthwise_conv_2d(NodeContext& node) {
  check_rank(node, node.input(0), 4, "the input");
  const V y = depthwise_of(node, node.map(node.input(0)), node.input(1));
  node.set_output(0, node.unmap(node.op() == "DepthwiseConv2dNative" ? y : with_fused(node, y, 1, 2)));
}

void convert_conv_3d(NodeContext& node) {
  check_rank(node, node.input(0), 5, "the input");
  node.set_output(0, node.unmap(conv_of(node, node.map(node.input(0)), node.input(1), 3)));
}

// Operands: the result's shape, filters [spatial...,O,I], a map. The pads are those of the convolution that
// goes from the result to the map.
void convert_conv_backprop(NodeContext& node) {
  const size_t rank = node.op() == "Conv2DBackpropInput" ? 2 : 3;
  check_rank(node, node.input(2), static_cast<int64_t>(rank) + 2, "the input");
  const V map = node.map(node.input(2));
  const Shape w = fixed_shape(node, node.input(1), rank + 2);
  const std::vector<int64_t> strides = spatial(node, "strides", rank, false);
  const std::vector<int64_t> dilations = spatial(node, "dilations", rank, true);
  ir::SymShape out = node.known_ints(0, "the result's shape");
  // Of old files: the extents of space alone.
  const bool is_short = out.size() == rank;
  if (!is_short && out.size() != rank + 2)
    node.invalid("a result's shape of " + std::to_string(out.size()) + " extents");
  const size_t first = is_short ? 0 : node.is_channels_first() ? 2 : 1;
  std::vector<int64_t> pads(2 * rank, 0), more(rank, 0);
  const std::string padding = node.text("padding");
  const ir::Ints given =
      rank == 2 ? node.ints("explicit_paddings", std::vector<int64_t>()) : std::vector<int64_t>();
  for (size_t d = 0; d < rank; ++d) {
    if (strides[d] < 1 || dilations[d] < 1) node.invalid("a stride or dilation below 1");
    const ir::SymInt whole = (node.shape(map)[d + 2] - 1) * strides[d] + (w[d] - 1) * dilations[d] + 1;
    // What both depend on is the same in all runs from here on.
    const int64_t excess = whole - out[first + d];
    if (padding == "EXPLICIT") {
      if (given.size() != 2 * (rank + 2))
        node.invalid("explicit_paddings has " + std::to_string(given.size()) + " numbers");
      pads[d] = given[2 * (first + d)];
      pads[d + rank] = given[2 * (first + d) + 1];
      more[d] = pads[d] + pads[d + rank] - excess;
    } else {
      if (padding != "SAME" && padding != "VALID") node.invalid("padding is \"" + padding + "\"");
      if (padding == "VALID" && excess > 0)
        node.invalid("a result of " + to_string(out[first + d]) + " for windows over " + to_string(whole));
      more[d] = std::max<int64_t>(-excess, 0);
      pads[d] = std::max<int64_t>(excess, 0) / 2;
      pads[d + rank] = std::max<int64_t>(excess, 0) - pads[d];
    }
    if (more[d] < 0 || more[d] >= strides[d] * 2 + w[d] * dilations[d])
      node.invalid("a result of " + to_string(out[first + d]) + " for windows over " + to_string(whole));
  }
  Shape perm{static_cast<int64_t>(rank) + 1, static_cast<int64_t>(rank)}, to{w[rank + 1], w[rank]};
  for (size_t d = 0; d < rank; ++d) {
    perm.push_back(static_cast<int64_t>(d));
    to.push_back(w[d]);
  }
  const ir::Attrs attrs{{"strides", strides},
                        {"dilations", dilations},
                        {"pads", pads},
                        {"output_padding", more},
                        {"group", int64_t{1}}};
  const V weights = node.weights(node.input(1), perm, to);
  const int64_t terms = num_elements(w) / std::max<int64_t>(w[rank], 1);
  const V y = build::exact_sums(node, map, weights, terms, [&](V data, V each) {
    return node.add("conv_transpose", {data, each}, attrs);
  });
  node.set_output(0, node.unmap(y));
}

namespace {

V turned(NodeContext& node, V x) {
  Compose c(node);
  ir::Ints perm = c.count_to(node.rank(x));
  std::swap(perm.back(), perm[perm.size() - 2]);
  return c.transpose(x, perm);
}

V product(NodeContext& node, bool turn_a, bool turn_b) {
  V a = node.input(0), b = node.input(1);
  if (node.rank(a) < 2 || node.rank(b) < 2) node.invalid("an operand has a rank below 2");
  if (turn_a) a = turned(node, a);
  // Short integers are summed as wider ones, whose lower bits are the same.
  Compose c(node);
  const DType dtype = node.dtype(a);
  if (is_float(dtype)) return c.matmul(a, b, turn_b);
  return c.cast(c.matmul(c.summable(a), c.summable(b), turn_b), dtype);
}

}  // namespace

void convert_matmul(NodeContext& node) {
  node.set_output(0, product(node, node.flag("transpose_a", false), node.flag("transpose_b", false)));
}

void convert_fused_matmul(NodeContext& node) {
  const V y = product(node, node.flag("transpose_a", false), node.flag("transpose_b", false));
  node.set_output(0, with_fused(node, y, node.rank(y) - 1, 2));
}

void convert_batch_matmul(NodeContext& node) {
  node.set_output(0, product(node, node.flag("adj_x", false), node.flag("adj_y", false)));
}

// Operands: x, scale, offset, mean, variance.
namespace {

/// Of each channel; `unbiased`: the variance that a sample has.
struct Statistics {
  V mean, variance, unbiased;
};

/// Those of the batch itself, of map [N,C,spatial...], in float32.
Statistics statistics_of(NodeContext& node, V map) {
  Compose c(node);
  const V x = c.cast(map, DType::kFloat32);
  const ir::SymShape shape = node.shape(x);
  std::vector<int64_t> axes{0};
  for (int64_t d = 2; d < node.rank(x); ++d) axes.push_back(d);
  const V mean = c.reduce("reduce_mean", x, axes, true);
  const V apart = c.sub(x, mean);
  const V variance = c.reduce("reduce_mean", c.mul(apart, apart), axes, false);
  const ir::SymInt count = floordiv(num_elements(shape), shape[1]);
  const V unbiased = c.mul(variance, c.div(c.extent(variance, count), c.extent(variance, max(count - 1, 1))));
  return {c.reshape(mean, {shape[1]}), variance, unbiased};
}

}  // namespace

void convert_batch_norm(NodeContext& node) {
  Compose c(node);
  const double epsilon = node.real("epsilon", static_cast<double>(1e-4F));
  const V x = node.input(0);
  if (node.rank(x) < 3) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  const V map = node.map(x);
  const Statistics own = node.flag("is_training", true)
                             ? statistics_of(node, map)
                             : Statistics{node.input(3), node.input(4), node.input(4)};
  std::vector<V> inputs{map};
  for (const V row : {node.input(1), node.input(2), own.mean, own.variance})
    inputs.push_back(c.cast(row, node.dtype(map)));
  V y = node.add("batch_norm", inputs, {{"epsilon", epsilon}});
  if (node.op() == "_FusedBatchNormEx") {
    const int64_t sides = node.integer("num_side_inputs", 0);
    if (sides > 1) node.invalid("num_side_inputs is " + std::to_string(sides));
    if (sides == 1) y = c.add(y, node.map(node.input(5)));
    const std::string activation = node.text("activation_mode", "Identity");
    if (activation != "Identity" && activation != "Relu")
      node.unsupported("activation_mode", "\"" + activation + "\" is not implemented");
    if (activation == "Relu") y = c.unary("relu", y);
  }
  node.set_output(0, node.unmap(y));
  node.set_item(1, {own.mean, {}});
  node.set_item(2, {own.unbiased, {}});
  node.set_item(3, {own.mean, {}});
  node.set_item(4, {own.variance, {}});
}

// alpha is a factor of the sum, in the graph of the mean.
void convert_lrn(NodeContext& node) {
  const int64_t radius = node.integer("depth_radius", 5);
  if (radius < 0 || radius > (1 << 20)) node.invalid("depth_radius is " + std::to_string(radius));
  const int64_t size = 2 * radius + 1;
  const V y = node.add("lrn", {node.first(node.input(0))},
                       {{"size", size},
                        {"alpha", node.real("alpha", 1) * static_cast<double>(size)},
                        {"beta", node.real("beta", 0.5)},
                        {"bias", node.real("bias", 1)}});
  node.set_output(0, node.last(y));
}

void convert_einsum(NodeContext& node) {
  node.set_output(0, build::einsum(node, node.text("equation"), node.inputs_from(0)));
}

void convert_softmax(NodeContext& node) {
  const char* op = node.op() == "Softmax" ? "softmax" : "log_softmax";
  node.set_output(0, build::along_channels(node, node.maps(), op, node.input(0)));
}

void convert_l2_loss(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const V sum = c.reduce("reduce_sum", c.mul(x, x), c.count_to(node.rank(x)), false);
  node.set_output(0, c.times(sum, 0.5));
}

}  // namespace tensormill::frontend::tensorflow
