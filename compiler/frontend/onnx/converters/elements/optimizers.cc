// ai.onnx.preview.training: one step of an optimizer for any number of tensors.
#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Operands behind the learning rate R and the count T of updates so far: `per_tensor` lists of tensors of
/// equal length, one after the other.
class OptimizerStep {
public:
  OptimizerStep(NodeContext& context, size_t per_tensor) : c(context), context_(context) {
    const size_t rest = context.num_inputs() < 2 ? 1 : context.num_inputs() - 2;
    if (rest == 0 || rest % per_tensor != 0)
      context.invalid(std::to_string(context.num_inputs()) + " operands, expected 2 and a multiple of " +
                      std::to_string(per_tensor));
    count = rest / per_tensor;
  }

  V operand(size_t list, size_t tensor) const { return context_.input(2 + list * count + tensor); }
  void set(size_t list, size_t tensor, V value) { context_.set_output(list * count + tensor, value); }
  /// R and T in the dtype of `like`, without axes.
  V rate(V like) { return c.reshape(c.cast(context_.input(0), c.dtype(like)), {}); }
  V updates(V like) { return c.reshape(c.cast(context_.input(1), c.dtype(like)), {}); }
  V is_first(V like) {
    const V done = updates(like);
    return c.unary("not", c.binary("greater", done, c.number(done, 0)));
  }
  /// The gradient of tensor `index` and of half its squared norm.
  V regularized(size_t index) {
    const double norm = context_.float_attr("norm_coefficient", 0);
    const V x = operand(0, index);
    return c.add(c.times(x, norm), operand(1, index));
  }
  /// weight * a + (1 - weight) * b
  V blended(V a, V b, double weight) { return c.add(c.times(a, weight), c.times(b, 1 - weight)); }

  Compose c;
  size_t count = 0;

private:
  NodeContext& context_;
};

}  // namespace

// Duchi, Hazan, Singer 2011.
void convert_adagrad(NodeContext& context) {
  OptimizerStep step(context, 3);
  Compose& c = step.c;
  for (size_t i = 0; i < step.count; ++i) {
    const V x = step.operand(0, i), gradient = step.regularized(i);
    const V decay = c.plus(c.times(step.updates(x), context.float_attr("decay_factor", 0)), 1);
    const V squares = c.add(step.operand(2, i), c.mul(gradient, gradient));
    const V size = c.plus(c.unary("sqrt", squares), context.float_attr("epsilon", 1e-6F));
    step.set(0, i, c.sub(x, c.div(c.mul(c.div(step.rate(x), decay), gradient), size)));
    step.set(1, i, squares);
  }
}

// Kingma, Ba 2015.
void convert_adam(NodeContext& context) {
  OptimizerStep step(context, 4);
  Compose& c = step.c;
  const double alpha = context.float_attr("alpha", 0.9F), beta = context.float_attr("beta", 0.999F);
  for (size_t i = 0; i < step.count; ++i) {
    const V x = step.operand(0, i), gradient = step.regularized(i);
    const V mean = step.blended(step.operand(2, i), gradient, alpha);
    const V square = step.blended(step.operand(3, i), c.mul(gradient, gradient), beta);
    const V done = step.updates(x), one = c.number(done, 1);
    const V correction = c.div(c.unary("sqrt", c.sub(one, c.binary("pow", c.number(done, beta), done))),
                               c.sub(one, c.binary("pow", c.number(done, alpha), done)));
    const V rate = c.mul(step.rate(x), c.where(step.is_first(x), one, correction));
    const V size = c.plus(c.unary("sqrt", square), context.float_attr("epsilon", 1e-6F));
    const V next = c.sub(x, c.div(c.mul(rate, mean), size));
    step.set(0, i, c.times(next, 1 - context.float_attr("norm_coefficient_post", 0)));
    step.set(1, i, mean);
    step.set(2, i, square);
  }
}

void convert_momentum(NodeContext& context) {
  OptimizerStep step(context, 3);
  Compose& c = step.c;
  const std::string mode = context.string_attr("mode", "standard");
  if (mode != "standard" && mode != "nesterov") context.invalid("mode is \"" + mode + "\"");
  const double alpha = context.float_attr("alpha", 0);
  for (size_t i = 0; i < step.count; ++i) {
    const V x = step.operand(0, i), gradient = step.regularized(i);
    const V one = c.number(x, 1);
    const V beta = c.where(step.is_first(x), one, c.number(x, context.float_attr("beta", 0)));
    const V momentum = c.add(c.times(step.operand(2, i), alpha), c.mul(beta, gradient));
    const V direction = mode == "standard" ? momentum : c.add(gradient, c.times(momentum, alpha));
    step.set(0, i, c.sub(x, c.mul(step.rate(x), direction)));
    step.set(1, i, momentum);
  }
}

}  // namespace tensormill::frontend::onnx
