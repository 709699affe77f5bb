// Losses by classes: the standard defines both as functions of simpler operators.
#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

/// -weight[target] * log_prob[.., target, ..], reduced; log_prob is [N,C,d...], target [N,d...].
ir::ValueId negative_log_likelihood(NodeContext& context, ir::ValueId log_prob, ir::ValueId target,
                                    ir::ValueId weight) {
  Compose c(context);
  const ir::SymShape shape = c.shape(log_prob), points = c.shape(target);
  ir::SymShape expected = shape;
  if (shape.size() < 2) context.invalid("the scores have shape " + to_string(shape) + ", expected [N,C,...]");
  expected.erase(expected.begin() + 1);
  if (points != expected)
    context.invalid("the labels have shape " + to_string(points) + ", expected " + to_string(expected));
  ir::ValueId ignored = ir::kAbsent;
  ir::ValueId label = target;
  if (context.has_attr("ignore_index")) {
    ignored =
        c.binary("equal", target, c.number(target, static_cast<double>(context.int_attr("ignore_index", 0))));
    label = c.where(ignored, c.number(target, 0), target);
  }
  ir::ValueId loss = c.unary("neg", c.squeeze(c.gather_elements(log_prob, c.unsqueeze(label, 1), 1), 1));
  ir::ValueId share = ir::kAbsent;
  if (weight != ir::kAbsent) share = c.gather(weight, label, 0);
  if (share != ir::kAbsent) loss = c.mul(loss, share);
  if (ignored != ir::kAbsent) {
    if (share == ir::kAbsent) share = c.filled(c.dtype(log_prob), points, 1);
    share = c.where(ignored, c.number(share, 0), share);
    loss = c.where(ignored, c.number(loss, 0), loss);
  }
  const std::string reduction = context.string_attr("reduction", "mean");
  if (reduction == "none") return loss;
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < points.size(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  if (reduction == "mean" && share == ir::kAbsent) return c.reduce("reduce_mean", loss, axes, false);
  if (reduction != "mean" && reduction != "sum") context.invalid("reduction is \"" + reduction + "\"");
  const ir::ValueId sum = c.reduce("reduce_sum", loss, axes, false);
  return reduction == "sum" ? sum : c.div(sum, c.reduce("reduce_sum", share, axes, false));
}

}  // namespace

void convert_nll_loss(NodeContext& context) {
  context.set_output(
      0, negative_log_likelihood(context, context.input(0), context.input(1), context.optional_input(2)));
}

void convert_softmax_cross_entropy_loss(NodeContext& context) {
  const ir::ValueId log_prob = context.add("log_softmax", {context.input(0)}, {{"axis", int64_t{1}}});
  context.set_output(0,
                     negative_log_likelihood(context, log_prob, context.input(1), context.optional_input(2)));
  context.set_output(1, log_prob);
}

}  // namespace tensormill::frontend::onnx
