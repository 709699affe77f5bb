// Losses of scores for classes: how little is given to the class that each target names.
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// Which axis of scores the classes are: the only one, or the one behind the batch.
int64_t axis_of_classes(NodeContext& node, V scores) {
  if (node.rank(scores) == 0) node.invalid("the scores have no dims");
  return node.rank(scores) == 1 ? 0 : 1;
}

/// The argument "weight", one of each class, along the axis of scores; kAbsent where there is none.
V weights_along(NodeContext& node, V scores, int64_t axis) {
  const V weight = node.optional_tensor("weight");
  if (weight == ir::kAbsent) return weight;
  ir::SymShape along(node.shape(scores).size(), 1);
  along[static_cast<size_t>(axis)] = node.shape(scores)[static_cast<size_t>(axis)];
  return Compose(node).reshape(Compose(node).cast(weight, node.dtype(scores)), along);
}

/// Of each target: what is lost, and how much it counts.
struct Losses {
  V losses, counts;
  V is_ignored;
};

/// By logarithms of what each class is given; targets of "ignore_index" lose nothing and do not count.
Losses losses_of(NodeContext& node, V logs, int64_t axis) {
  Compose c(node);
  V target = c.cast(node.tensor("target"), DType::kInt64);
  const V is_ignored = c.binary("equal", target, c.ints({node.integer("ignore_index")}, {}));
  // A class below 0 is as wrong as one behind the last.
  target =
      c.where(is_negative(node, target), c.dims({node.shape(logs)[static_cast<size_t>(axis)]}, {}), target);
  target = c.where(is_ignored, c.number(target, 0), target);
  const V own = c.squeeze(c.gather_elements(logs, c.unsqueeze(target, axis), axis), axis);
  const V zero = c.number(logs, 0), weight = node.optional_tensor("weight");
  const V each =
      weight == ir::kAbsent ? c.number(logs, 1) : c.gather(c.cast(weight, node.dtype(logs)), target, 0);
  const V counts = c.expand(c.where(is_ignored, zero, each), node.shape(target));
  return {c.where(is_ignored, zero, c.mul(c.unary("neg", own), counts)), counts, is_ignored};
}

V sum_of_all(NodeContext& node, V x) {
  Compose c(node);
  return c.reduce("reduce_sum", x, c.count_to(node.rank(x)), false);
}

/// The mean is by what counts.
V reduced(NodeContext& node, V losses, V counts) {
  if (node.integer("reduction") != 1) return reduced_loss(node, losses);
  return Compose(node).div(sum_of_all(node, losses), sum_of_all(node, counts));
}

}  // namespace

void convert_nll_loss(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self"), logs = widened(node, given);
  const Losses found = losses_of(node, logs, axis_of_classes(node, logs));
  node.set_output(0, c.cast(reduced(node, found.losses, found.counts), node.dtype(given)));
  if (!node.op().ends_with("_forward") || !node.may_be_used(1)) return;
  // What the mean was divided by.
  const V total = node.integer("reduction") == 0 ? c.number(given, 0)
                                                 : c.cast(sum_of_all(node, found.counts), node.dtype(given));
  node.set_output(1, total);
}

namespace {

/// Of targets that say how much each class is to be given.
V loss_of_shares(NodeContext& node, V logs, int64_t axis) {
  Compose c(node);
  static_cast<void>(node.integer("ignore_index"));
  const double smoothing = node.real("label_smoothing");
  V shares = c.cast(node.tensor("target"), node.dtype(logs));
  if (smoothing > 0) {
    const V classes = c.extent(logs, node.shape(logs)[static_cast<size_t>(axis)]);
    shares = c.add(c.times(shares, 1 - smoothing), c.div(c.number(classes, smoothing), classes));
  }
  V given = c.mul(logs, shares);
  if (const V weights = weights_along(node, logs, axis); weights != ir::kAbsent)
    given = c.mul(given, weights);
  return reduced_loss(node, c.unary("neg", c.reduce("reduce_sum", given, {axis}, false)));
}

}  // namespace

// A part of each target, "label_smoothing", is spread over all classes.
void convert_cross_entropy(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self"), x = widened(node, given);
  const int64_t axis = axis_of_classes(node, x);
  const V logs = softmax_along(node, "log_softmax", x, axis);
  if (is_float(node.dtype(node.tensor("target"))))
    return node.set_output(0, c.cast(loss_of_shares(node, logs, axis), node.dtype(given)));
  const Losses found = losses_of(node, logs, axis);
  const double smoothing = node.real("label_smoothing");
  V y = reduced(node, found.losses, found.counts);
  if (smoothing > 0) {
    const V weights = weights_along(node, logs, axis);
    const V all = c.reduce("reduce_sum", weights == ir::kAbsent ? logs : c.mul(logs, weights), {axis}, false);
    const V spread_out = c.where(found.is_ignored, c.number(all, 0), c.unary("neg", all));
    const V classes = c.extent(logs, node.shape(logs)[static_cast<size_t>(axis)]);
    const V part = c.div(c.number(classes, smoothing), classes);
    y = c.add(c.times(y, 1 - smoothing), c.mul(reduced(node, spread_out, found.counts), part));
  }
  node.set_output(0, c.cast(y, node.dtype(given)));
}

}  // namespace tensormill::frontend::pytorch
