// com.microsoft's fused operators: a standard operator with what an optimizer found before or behind it.
#include <algorithm>
#include <optional>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/ml/ml.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// By place; nothing for those that are not given.
using Params = std::vector<std::optional<double>>;

double param(const Params& params, size_t index, double fallback) {
  return index < params.size() ? params[index].value_or(fallback) : fallback;
}

/// The activation named by attribute activation; "" is none.
V activated(NodeContext& context, V x, const Params& params) {
  const std::string name = context.string_attr("activation", "");
  if (name.empty()) return x;
  if (name == "Relu") return context.add("relu", {x});
  if (name == "Sigmoid") return context.add("sigmoid", {x});
  if (name == "Tanh") return context.add("tanh", {x});
  if (name == "LeakyRelu") return context.add("leaky_relu", {x}, {{"alpha", param(params, 0, 0.01)}});
  if (name == "HardSigmoid")
    return context.add("hard_sigmoid", {x},
                       {{"alpha", param(params, 0, 0.2)}, {"beta", param(params, 1, 0.5)}});
  Compose c(context);
  if (name == "HardSwish") return c.unary("hard_swish", x);
  if (name == "Softplus") return c.unary("softplus", x);
  if (name == "Softsign") return c.unary("softsign", x);
  if (name == "Elu") return context.add("elu", {x}, {{"alpha", param(params, 0, 1)}});
  if (name == "Selu")
    return context.add(
        "selu", {x},
        {{"alpha", param(params, 0, 1.6732632423543772)}, {"gamma", param(params, 2, 1.0507009873554805)}});
  if (name == "ThresholdedRelu")
    return c.where(c.binary("greater", x, c.number(x, param(params, 0, 1))), x, c.number(x, 0));
  if (name == "Clip" && params.size() >= 2 && params[0] && params[1])
    return c.clip(x, *params[0], *params[1]);
  context.unsupported("activation", "value \"" + name + "\" is not implemented");
}

}  // namespace

// activation(Conv(X, W, B) + Z)
void convert_fused_conv(NodeContext& context) {
  V result = convolution(context, context.input(0), context.input(1), context.optional_input(2));
  if (context.has_input(3)) result = context.add("add", {result, context.input(3)});
  const ir::CheckedList<double> params = float_values(context, "activation_params");
  context.set_output(0, activated(context, result, {params.begin(), params.end()}));
}

void convert_fused_gemm(NodeContext& context) {
  Params params;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"})
    params.push_back(context.has_attr(name) ? std::optional(context.float_attr(name, 0)) : std::nullopt);
  context.set_output(0, activated(context, gemm(context), params));
}

namespace {

/// Operand `index` of FusedMatMul: where `attribute` says so, its rows are the first dim, before the batches.
V with_batches_first(NodeContext& context, size_t index, const char* attribute) {
  Compose c(context);
  const V x = context.input(index);
  ir::Ints perm = c.count_to(context.rank(x));
  if (context.int_attr(attribute, 0) == 0 || perm.size() < 3) return x;
  std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  return c.transpose(x, perm);
}

}  // namespace

// alpha * A' * B' over the last two dims
void convert_fused_matmul(NodeContext& context) {
  Compose c(context);
  V a = with_batches_first(context, 0, "transBatchA");
  const int64_t rank = context.rank(a);
  if (context.int_attr("transA", 0) != 0 && rank > 1) {
    ir::Ints perm = c.count_to(rank);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    a = c.transpose(a, perm);
  }
  const V b = with_batches_first(context, 1, "transBatchB");
  const V result = c.matmul(a, b, context.int_attr("transB", 0) != 0);
  const double alpha = context.float_attr("alpha", 1.0);
  context.set_output(0, alpha == 1.0 ? result : c.times(result, alpha));
}

void convert_bias_gelu(NodeContext& context) {
  const V sum = context.add("add", {context.input(0), context.input(1)});
  context.set_output(0, context.add("gelu", {sum}, {{"approximate", "none"}}));
}

// Gelu by tanh, of the input plus an optional bias
void convert_fast_gelu(NodeContext& context) {
  V x = context.input(0);
  if (context.has_input(1)) x = context.add("add", {x, context.input(1)});
  context.set_output(0, context.add("gelu", {x}, {{"approximate", "tanh"}}));
}

// x * sigmoid(alpha * x)
void convert_quick_gelu(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0);
  context.set_output(0, c.mul(x, c.unary("sigmoid", c.times(x, context.float_attr("alpha", 1.702)))));
}

// Embeddings of words, positions and segments, added and normalized; output 1 is the number of ones of each
// row of the mask, output 2 the sum.
void convert_embed_layer_norm(NodeContext& context) {
  Compose c(context);
  const V ids = context.input(0);
  const ir::SymShape shape = c.shape(ids);
  if (shape.size() != 2) context.invalid("input_ids has shape " + to_string(shape));
  const V places = context.has_input(8) ? context.input(8) : c.iota(shape[1], {1, shape[1]});
  V sum = c.add(c.gather(context.input(2), ids, 0), c.gather(context.input(3), places, 0));
  if (context.has_input(1) && context.has_input(4))
    sum = c.add(sum, c.gather(context.input(4), context.input(1), 0));
  const LayerNorm norm = layer_normalized(context, sum, context.input(5), context.input(6), {2},
                                          context.float_attr("epsilon", 1e-12));
  context.set_output(0, norm.result);
  const V counts =
      context.has_input(7)
          ? c.cast(c.reduce("reduce_sum", c.cast(context.input(7), DType::kInt64), {1}, false), DType::kInt32)
          : c.filled(DType::kInt32, {shape[0]}, 0);
  context.set_output(1, counts);
  context.set_output(2, sum);
}

// Layer or root-mean-square normalization of input + skip + bias; output 3 is the sum.
void convert_skip_layer_norm(NodeContext& context) {
  Compose c(context);
  const bool simplified = context.node().op_type == "SkipSimplifiedLayerNormalization";
  const V skip = context.input(1);
  V sum = c.add(context.input(0), skip);
  const size_t bias = simplified ? 3 : 4;
  if (context.has_input(bias)) sum = c.add(sum, context.input(bias));
  const double epsilon = context.float_attr("epsilon", 1e-12);
  const std::vector<int64_t> axes{context.rank(sum) - 1};
  if (simplified) {
    context.set_output(0, rms_normalized(context, sum, context.input(2), axes, epsilon));
  } else {
    const LayerNorm norm =
        layer_normalized(context, sum, context.input(2), context.optional_input(3), axes, epsilon);
    context.set_output(0, norm.result);
    context.set_output(1, norm.mean);
    context.set_output(2, norm.inverse);
  }
  context.set_output(3, sum);
}

}  // namespace tensormill::frontend::onnx
