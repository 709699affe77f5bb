// How far results change with operands: of models that work out forces, or what a picture's parts count for.
#include <algorithm>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// Of functions of one number, by their result y, and by how the rest changes with it.
V slope_by_result(NodeContext& node, std::string_view op, V y, V change) {
  Compose c(node);
  if (op == "SigmoidGrad") return c.mul(change, c.mul(y, c.sub(c.number(y, 1), y)));
  if (op == "TanhGrad") return c.mul(change, c.sub(c.number(y, 1), c.mul(y, y)));
  if (op == "SqrtGrad") return c.div(c.times(change, 0.5), y);
  if (op == "RsqrtGrad") return c.mul(c.times(change, -0.5), c.mul(y, c.mul(y, y)));
  return c.unary("neg", c.mul(change, c.mul(y, y)));  // of 1 / x
}

/// The factor and the offset of a SELU's negative part.
constexpr double kSeluScale = 1.0507009873554805, kSeluOffset = 1.7580993408473766;

/// Of activations, by their operand x, or by their result.
V slope_of_activation(NodeContext& node, std::string_view op, V change, V x) {
  Compose c(node);
  const V none = c.number(change, 0), is_positive = c.binary("greater", x, c.number(x, 0)),
          is_negative = c.binary("less", x, c.number(x, 0));
  if (op == "ReluGrad") return c.where(is_positive, change, none);
  if (op == "Relu6Grad")
    return c.where(c.binary("and", is_positive, c.binary("less", x, c.number(x, 6))), change, none);
  if (op == "LeakyReluGrad")
    return c.where(is_positive, change, c.times(change, node.real("alpha", static_cast<double>(0.2F))));
  if (op == "EluGrad") return c.where(is_negative, c.mul(c.plus(x, 1), change), change);
  if (op == "SeluGrad")
    return c.where(is_negative, c.mul(change, c.plus(x, kSeluOffset)), c.times(change, kSeluScale));
  if (op == "SoftplusGrad") return c.div(change, c.plus(c.unary("exp", c.unary("neg", x)), 1));
  const V far = c.plus(c.unary("abs", x), 1);  // SoftsignGrad
  return c.div(change, c.mul(far, far));
}

void check_alike(NodeContext& node) {
  const ir::SymShape a = node.shape(node.input(0)), b = node.shape(node.input(1));
  if (!ir::demand_equal(a, b)) node.invalid("operands of shapes " + to_string(a) + " and " + to_string(b));
}

}  // namespace

void convert_slope_by_result(NodeContext& node) {
  check_alike(node);
  node.set_output(0, slope_by_result(node, node.op(), node.input(0), node.input(1)));
}

void convert_slope_of_activation(NodeContext& node) {
  check_alike(node);
  node.set_output(0, slope_of_activation(node, node.op(), node.input(0), node.input(1)));
}

// The sums over all axes but that of the channels.
void convert_bias_slope(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  if (node.rank(x) < 2) node.invalid("an operand of shape " + to_string(node.shape(x)));
  ir::Ints axes = c.count_to(node.rank(x));
  axes.erase(node.is_channels_first() ? axes.begin() + 1 : axes.end() - 1);
  node.set_output(0, c.cast(c.reduce("reduce_sum", c.summable(x), axes, false), node.dtype(x)));
}

// Operands: two shapes. Along which axes of what they broadcast to each has one element.
void convert_broadcast_axes(NodeContext& node) {
  Compose c(node);
  const ir::SymShape shapes[] = {node.known_ints(0, "s0"), node.known_ints(1, "s1")};
  static_cast<void>(ir::broadcast_shapes(shapes[0], shapes[1]));
  const size_t rank = std::max(shapes[0].size(), shapes[1].size());
  for (size_t side = 0; side < 2; ++side) {
    const ir::SymShape& own = shapes[side];
    std::vector<int64_t> axes;
    for (size_t d = 0; d < rank; ++d)
      if (d < rank - own.size() || same(own[d - (rank - own.size())], 1))
        axes.push_back(static_cast<int64_t>(d));
    node.set_output(side,
                    c.cast(c.ints(axes, {static_cast<int64_t>(axes.size())}), node.dtype(node.input(0))));
  }
}

// Operands: an axis, and shapes of what stands behind each other along it: where each begins.
void convert_concat_offset(NodeContext& node) {
  Compose c(node);
  const int64_t given = build::only_integer(node, node.known_ints(0, "concat_dim"), "concat_dim");
  ir::SymInt begin = 0;
  for (size_t i = 1; i < node.num_inputs(); ++i) {
    const ir::SymShape shape = node.known_ints(i, "shape");
    const auto axis = static_cast<size_t>(node.normalize_axis(given, static_cast<int64_t>(shape.size())));
    ir::SymShape offset(shape.size(), ir::SymInt(0));
    offset[axis] = begin;
    begin += shape[axis];
    node.set_output(i - 1, c.cast(node.extents(offset), node.dtype(node.input(i))));
  }
}

}  // namespace tensormill::frontend::tensorflow
