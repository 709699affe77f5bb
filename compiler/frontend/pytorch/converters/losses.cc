// How far numbers are from those that they are to be, and numbers rounded as if they were quantized.
#include <cmath>

#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// The loss of each element that is `apart` from its target.
V loss_of(NodeContext& node, V apart) {
  Compose c(node);
  const std::string& op = node.op();
  if (op == "mse_loss") return c.mul(apart, apart);
  const V size = c.unary("abs", apart);
  if (op == "l1_loss") return size;
  const bool is_huber = op == "huber_loss";
  const double width = node.real(is_huber ? "delta" : "beta");
  if (width == 0 && !is_huber) return size;
  const V square = c.times(c.mul(apart, apart), is_huber ? 0.5 : 0.5 / width);
  const V line = is_huber ? c.times(c.minus(size, 0.5 * width), width) : c.minus(size, 0.5 * width);
  return c.where(c.binary("less", size, c.number(size, width)), square, line);
}

}  // namespace

// Of each element, their mean or their sum.
void convert_loss(NodeContext& node) {
  Compose c(node);
  const Operand a = node.operand("self"), b = node.operand("target");
  const DType dtype = node.common_type({a, b});
  const V loss = loss_of(node, c.sub(widened(node, node.as(a, dtype)), widened(node, node.as(b, dtype))));
  const int64_t reduction = node.integer("reduction");
  if (reduction < 0 || reduction > 2) node.invalid("reduction is " + std::to_string(reduction));
  const char* op = reduction == 1 ? "reduce_mean" : "reduce_sum";
  const V y = reduction == 0 ? loss : c.reduce(op, loss, c.count_to(node.rank(loss)), false);
  node.set_output(0, c.cast(y, dtype));
}

// Rounded to the steps of a scale, which may be one for each place of an axis.
void convert_fake_quantize(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self"), x = c.cast(given, DType::kFloat32);
  V scale = node.as(node.operand("scale"), DType::kFloat32),
    zero = node.as(node.operand("zero_point"), DType::kFloat32);
  if (takes(node, "axis")) {
    ir::SymShape along(node.shape(x).size(), 1);
    const auto axis = static_cast<size_t>(node.axis("axis", node.rank(x)));
    along[axis] = node.shape(x)[axis];
    scale = c.reshape(scale, along);
    zero = c.reshape(zero, along);
  }
  const V steps = c.unary("round", c.add(c.mul(x, c.unary("reciprocal", scale)), zero));
  const V inside = c.clip(steps, node.real("quant_min"), node.real("quant_max"));
  node.set_output(0, c.cast(c.mul(c.sub(inside, zero), scale), node.dtype(given)));
  if (!node.op().ends_with("_cachemask") || !node.may_be_used(1)) return;
  node.set_output(1, c.binary("equal", steps, inside));
}

}  // namespace tensormill::frontend::pytorch
