// How far numbers are from those that they are to be, and numbers rounded as if they were quantized.
#include <algorithm>
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
  const V y = reduced_loss(node, loss);
  node.set_output(0, is_float(dtype) ? c.cast(y, dtype) : node.is_typed() ? node.as_output(y) : y);
}

namespace {

/// Arguments as real numbers of the type that they have together, as their elements are computed.
struct Together {
  std::vector<V> values;
  DType dtype;
};

Together together(NodeContext& node, const std::vector<const char*>& names) {
  std::vector<Operand> operands;
  for (const char* name : names)
    if (node.has(name)) operands.push_back(node.operand(name));
  const DType common = node.common_type(operands), dtype = is_float(common) ? common : DType::kFloat32;
  Together made{{}, dtype};
  size_t next = 0;
  for (const char* name : names)
    made.values.push_back(node.has(name) ? node.as(operands[next++], computed_in(dtype)) : ir::kAbsent);
  return made;
}

/// In the type that the file says, else in `dtype`.
void set_loss(NodeContext& node, V losses, DType dtype) {
  const DType made = node.is_typed() ? node.output_dtype() : dtype;
  node.set_output(0, Compose(node).cast(reduced_loss(node, losses), made));
}

V at_least(NodeContext& node, V x, double least) {
  return Compose(node).binary("max", x, Compose(node).number(x, least));
}

}  // namespace

// How far distributions are from those that they are to be, of their logarithms.
void convert_kl_div(NodeContext& node) {
  Compose c(node);
  const Together given = together(node, {"self", "target"});
  const V x = given.values[0], target = given.values[1];
  if (node.flag("log_target"))
    return set_loss(node, c.mul(c.unary("exp", target), c.sub(target, x)), given.dtype);
  const V own = c.where(is_zero(node, target), target, c.mul(target, c.unary("log", target)));
  set_loss(node, c.sub(own, c.mul(target, x)), given.dtype);
}

// Of probabilities, whose logarithms count as -100 where they are less, or of what a sigmoid makes them of.
void convert_binary_cross_entropy(NodeContext& node) {
  Compose c(node);
  const bool is_of_logits = node.op() == "binary_cross_entropy_with_logits";
  const Together given = is_of_logits ? together(node, {"self", "target", "weight", "pos_weight"})
                                      : together(node, {"self", "target", "weight"});
  const V x = given.values[0], target = given.values[1], rest = c.sub(c.number(target, 1), target);
  V y = ir::kAbsent;
  if (is_of_logits) {
    const V log = c.unary("neg", c.unary("softplus", c.unary("neg", x)));
    const V more = given.values[3];
    const V factor = more == ir::kAbsent ? log : c.mul(log, c.plus(c.mul(c.minus(more, 1), target), 1));
    y = c.sub(c.mul(rest, x), factor);
  } else {
    const V log = at_least(node, c.unary("log", x), -100),
            other = at_least(node, c.unary("log1p", c.unary("neg", x)), -100);
    y = c.unary("neg", c.add(c.mul(rest, other), c.mul(target, log)));
  }
  if (given.values[2] != ir::kAbsent) y = c.mul(y, given.values[2]);
  // Weights leave the type as it is.
  const DType own = node.common_type({node.operand("self"), node.operand("target")});
  set_loss(node, y, is_float(own) ? own : DType::kFloat32);
}

// log(1 + e^(-target x)), targets 1 and -1.
void convert_soft_margin_loss(NodeContext& node) {
  Compose c(node);
  const Together given = together(node, {"self", "target"});
  const V product = c.mul(c.unary("neg", given.values[1]), given.values[0]);
  set_loss(node, c.unary("log1p", c.unary("exp", product)), given.dtype);
}

// Of rates, or of their logarithms; with "full" Stirling's formula stands for the factorials of the targets.
void convert_poisson_nll_loss(NodeContext& node) {
  Compose c(node);
  const Together given = together(node, {"input", "target"});
  const V x = given.values[0], target = given.values[1];
  const double eps = node.real("eps");
  V y = node.flag("log_input") ? c.sub(c.unary("exp", x), c.mul(target, x))
                               : c.sub(x, c.mul(target, c.unary("log", c.plus(x, eps))));
  if (node.flag("full")) {
    const V root = c.times(c.unary("log", c.times(target, 2 * std::numbers::pi)), 0.5);
    const V log = c.add(c.sub(c.mul(target, c.unary("log", target)), target), root);
    const V is_few = c.binary("less_equal", target, c.number(target, 1));
    y = c.add(y, c.where(is_few, c.number(y, 0), log));
  }
  set_loss(node, y, given.dtype);
}

// Targets of 1: the first input is to be larger, of -1: the second one.
void convert_margin_ranking_loss(NodeContext& node) {
  Compose c(node);
  const Together given = together(node, {"input1", "input2", "target"});
  const V apart = c.mul(c.unary("neg", given.values[2]), c.sub(given.values[0], given.values[1]));
  set_loss(node, at_least(node, c.plus(apart, node.real("margin")), 0), given.dtype);
}

namespace {

/// `is` where the target is not -1, and `is_not` where it is not 1.
V by_target(NodeContext& node, V target, V is, V is_not) {
  Compose c(node);
  const V first = c.where(c.binary("equal", target, c.number(target, -1)), c.number(is, 0), is);
  const V second = c.where(c.binary("equal", target, c.number(target, 1)), c.number(is_not, 0), is_not);
  return c.add(first, second);
}

}  // namespace

void convert_hinge_embedding_loss(NodeContext& node) {
  Compose c(node);
  const Together given = together(node, {"self", "target"});
  const V x = given.values[0];
  const V missing = at_least(node, c.sub(c.number(x, node.real("margin")), x), 0);
  set_loss(node, by_target(node, given.values[1], x, missing), given.dtype);
}

// Targets of 1: both are to have one direction, of -1: others.
void convert_cosine_embedding_loss(NodeContext& node) {
  constexpr double kLeast = 1e-12;
  Compose c(node);
  const Together given = together(node, {"input1", "input2"});
  const V a = given.values[0], b = given.values[1];
  const int64_t last = std::max(node.rank(a), node.rank(b)) - 1;
  if (last < 0) node.invalid("the inputs have no dims");
  const auto summed = [&](V x, V y) { return c.reduce("reduce_sum", c.mul(x, y), {last}, false); };
  const V lengths = c.mul(c.plus(summed(a, a), kLeast), c.plus(summed(b, b), kLeast));
  const V cosine = c.div(summed(a, b), c.unary("sqrt", lengths));
  const V target = c.cast(node.tensor("target"), node.dtype(cosine)), one = c.number(target, 1);
  const V is_same = c.binary("equal", target, one), is_other = c.binary("equal", target, c.unary("neg", one));
  const V zero = c.number(cosine, 0);
  const V same_loss = c.where(is_same, c.sub(one, cosine), zero);
  const V other_loss = c.where(is_other, at_least(node, c.minus(cosine, node.real("margin")), 0), zero);
  set_loss(node, c.add(same_loss, other_loss), given.dtype);
}

// The anchor is to be nearer to the positive than to the negative one, by the margin.
void convert_triplet_margin_loss(NodeContext& node) {
  Compose c(node);
  const Together given = together(node, {"anchor", "positive", "negative"});
  const double p = node.real("p"), eps = node.real("eps"), margin = node.real("margin");
  const auto distance = [&](V a, V b) {
    const V apart = c.plus(c.sub(a, b), eps);
    if (node.rank(apart) == 0) node.invalid("the inputs have no dims");
    return p_norm(node, apart, p, {node.rank(apart) - 1}, false);
  };
  const V anchor = given.values[0], positive = given.values[1], negative = given.values[2];
  V far = distance(anchor, negative);
  if (node.flag("swap")) far = c.binary("min", far, distance(positive, negative));
  const V loss = at_least(node, c.plus(c.sub(distance(anchor, positive), far), margin), 0);
  set_loss(node, loss, given.dtype);
}

// Rounded to the steps of a scale, which may be one for each place of an axis. A zero point that is a whole
// number is added to whole steps; of an axis it may be a real one, which counts before they are rounded.
void convert_fake_quantize(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self"), x = c.cast(given, DType::kFloat32);
  const Operand point = node.operand("zero_point");
  const bool is_of_axis = takes(node, "axis"), is_real = is_of_axis && is_float(point.type.dtype);
  V scale = node.as(node.operand("scale"), DType::kFloat32),
    zero = is_real ? node.as(point, DType::kFloat32) : c.cast(node.as(point, DType::kInt64), DType::kFloat32);
  if (is_of_axis) {
    ir::SymShape along(node.shape(x).size(), 1);
    const auto axis = static_cast<size_t>(node.axis("axis", node.rank(x)));
    along[axis] = node.shape(x)[axis];
    scale = c.reshape(scale, along);
    zero = c.reshape(zero, along);
  }
  const V scaled = c.mul(x, c.unary("reciprocal", scale));
  const V steps = is_real ? c.unary("round", c.add(scaled, zero)) : c.add(c.unary("round", scaled), zero);
  const V inside = c.clip(steps, node.real("quant_min"), node.real("quant_max"));
  node.set_output(0, c.cast(c.mul(c.sub(inside, zero), scale), node.dtype(given)));
  if (!node.op().ends_with("_cachemask") || !node.may_be_used(1)) return;
  node.set_output(1, c.binary("equal", steps, inside));
}

}  // namespace tensormill::frontend::pytorch
