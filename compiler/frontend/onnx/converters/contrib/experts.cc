// com.microsoft's MoE and QMoE: each token goes through the few experts that its router scores highest, and
// their results are added with weights of the scores.
#include <array>
#include <cmath>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/quantized/packed.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Of all experts: weights [E,out,in] and bias [E,out], which may be kAbsent.
struct ExpertLayer {
  V weights = ir::kAbsent, bias = ir::kAbsent;
  bool is_there() const { return weights != ir::kAbsent; }
};
struct Experts {
  std::array<ExpertLayer, 3> layers;  ///< fc1, fc2 and, beside fc1, fc3
};

/// Rows [B,T,in] times the weights [B,out,in] of each of B experts, plus the bias.
V product(Compose& c, V x, const ExpertLayer& layer) {
  const V result = c.matmul(x, layer.weights, true);
  return layer.bias == ir::kAbsent ? result : c.add(result, c.unsqueeze(layer.bias, 1));
}

/// g * sigmoid(alpha * g) * (l + beta), both limited before.
V swiglu(NodeContext& context, V gate, V line) {
  Compose c(context);
  if (context.has_attr("swiglu_limit")) {
    const double limit = context.float_attr("swiglu_limit", 0);
    gate = c.binary("min", gate, c.number(gate, limit));
    line = c.clip(line, -limit, limit);
  }
  const V turned = c.unary("sigmoid", c.times(gate, context.float_attr("activation_alpha", 1)));
  return c.mul(c.mul(gate, turned), c.plus(line, context.float_attr("activation_beta", 0)));
}

/// What goes into the second layer, from rows [B,T,hidden].
V activated(NodeContext& context, V x, const Experts& experts) {
  Compose c(context);
  const std::string kind = context.string_attr("activation_type", "relu");
  const V first = product(c, x, experts.layers[0]);
  const V third = experts.layers[2].is_there() ? product(c, x, experts.layers[2]) : ir::kAbsent;
  if (kind == "swiglu") {
    const ir::SymInt fusion = context.int_attr("swiglu_fusion", 0), width = c.shape(first).back() / 2;
    if (fusion == 0) {
      if (third == ir::kAbsent) context.invalid("swiglu_fusion is 0, and there is no fc3");
      return swiglu(context, first, third);
    }
    if (c.shape(first).back() != 2 * width) context.invalid("fc1 has an odd number of rows");
    const int64_t step = fusion == 1 ? 2 : 1;
    return swiglu(context, c.slice(first, 2, 0, width, step),
                  c.slice(first, 2, fusion == 1 ? ir::SymInt(1) : width, width, step));
  }
  V result = first;
  if (kind == "relu") result = c.unary("relu", first);
  if (kind == "gelu") result = context.add("gelu", {first}, {{"approximate", "tanh"}});
  if (kind == "silu") result = c.mul(first, c.unary("sigmoid", first));
  return third == ir::kAbsent ? result : c.mul(result, third);
}

V results_of(NodeContext& context, V x, const Experts& experts) {
  Compose c(context);
  return product(c, activated(context, x, experts), experts.layers[1]);
}

struct Routing {
  V chosen, weights;  ///< [T,k]
};

Routing routed(NodeContext& context, V logits, int64_t chosen_count) {
  Compose c(context);
  // Longer rows are sorted by a host step.
  constexpr int64_t kSortedByKernel = 15;
  const char* op = c.shape(logits)[1] > kSortedByKernel ? "sort_positions" : "arg_top_k";
  const V chosen =
      context.add(op, {logits}, {{"axis", int64_t{1}}, {"k", chosen_count}, {"largest", int64_t{1}}});
  const auto softmax = [&](V x) { return context.add("softmax", {x}, {{"axis", int64_t{1}}}); };
  // ONNX Runtime's QMoE normalizes whatever the attribute says.
  const bool of_chosen =
      context.int_attr("normalize_routing_weights", 0) != 0 || context.node().op_type == "QMoE";
  return {chosen, of_chosen ? softmax(c.gather_elements(logits, chosen, 1))
                            : c.gather_elements(softmax(logits), chosen, 1)};
}

/// By all experts, whose results have the weight 0 where they are not chosen: as few kernels as one token
/// has.
V by_all(NodeContext& context, V x, const Routing& routing, const Experts& experts, int64_t count) {
  Compose c(context);
  const V values = c.doubles(c.dtype(x), {0, 1}, {2});
  const V is_chosen =
      context.add("one_hot", {routing.chosen, values}, {{"axis", int64_t{-1}}, {"depth", count}});
  const V weights = c.reduce("reduce_sum", c.mul(is_chosen, c.unsqueeze(routing.weights, 2)), {1}, false);
  const V results = results_of(context, c.unsqueeze(x, 0), experts);
  const V weighted = c.mul(results, c.unsqueeze(c.transpose(weights, {1, 0}), 2));
  return c.reduce("reduce_sum", weighted, {0}, false);
}

/// Each token by the experts that it has, whose weights are gathered.
V by_chosen(NodeContext& context, V x, const Routing& routing, const Experts& experts, int64_t chosen_count) {
  Compose c(context);
  const ir::SymInt tokens = c.shape(x)[0], rows = tokens * chosen_count;
  const V chosen = c.reshape(routing.chosen, {rows});
  Experts own;
  for (size_t i = 0; i < experts.layers.size(); ++i) {
    const ExpertLayer& layer = experts.layers[i];
    if (layer.is_there()) own.layers[i].weights = c.gather(layer.weights, chosen, 0);
    if (layer.bias != ir::kAbsent) own.layers[i].bias = c.gather(layer.bias, chosen, 0);
  }
  const ir::SymInt hidden = c.shape(x)[1];
  const V repeated = c.expand(c.unsqueeze(x, 1), {tokens, chosen_count, hidden});
  const V results = results_of(context, c.reshape(repeated, {rows, 1, hidden}), own);
  const V weighted =
      c.mul(c.reshape(results, {tokens, chosen_count, c.shape(results)[2]}), c.unsqueeze(routing.weights, 2));
  return c.reduce("reduce_sum", weighted, {1}, false);
}

void check_layer(NodeContext& context, const ExpertLayer& layer, const char* name, int64_t count,
                 int64_t in) {
  if (!layer.is_there()) return;
  Compose c(context);
  const ir::SymShape shape = c.shape(layer.weights);
  const bool fits = shape.size() == 3 && shape[0] == count && shape[2] == in;
  const bool bias_fits =
      layer.bias == ir::kAbsent || (fits && c.shape(layer.bias) == ir::SymShape{shape[0], shape[1]});
  if (!fits || !bias_fits)
    context.invalid(std::string(name) + " has weights of shape " + to_string(shape) + ", expected [" +
                    std::to_string(count) + ",...," + std::to_string(in) + "], and a bias of a row each");
}

void set_mixture(NodeContext& context, const Experts& experts) {
  Compose c(context);
  const ir::SymShape shape = c.shape(context.input(0)), router = c.shape(context.input(1));
  if (shape.size() < 2 || router.size() != 2 || shape.back() < 1)
    context.invalid("operands of shapes " + to_string(shape) + " and " + to_string(router));
  const ir::SymInt &hidden = shape.back(), &count = router[1], tokens = num_elements(shape) / hidden;
  const int64_t chosen_count = context.int_attr("k", 1);
  if (router[0] != tokens || chosen_count < 1 || chosen_count > count)
    context.invalid(std::to_string(chosen_count) + " experts of " + to_string(router) + " for " +
                    std::to_string(tokens) + " tokens");
  const auto single = [&](V x) { return x == ir::kAbsent ? x : c.cast(x, DType::kFloat32); };
  Experts wide;
  for (size_t i = 0; i < experts.layers.size(); ++i)
    wide.layers[i] = {single(experts.layers[i].weights), single(experts.layers[i].bias)};
  check_layer(context, wide.layers[0], "fc1", count, hidden);
  check_layer(context, wide.layers[2], "fc3", count, hidden);
  const bool is_fused =
      context.string_attr("activation_type", "relu") == "swiglu" && context.int_attr("swiglu_fusion", 0) != 0;
  check_layer(context, wide.layers[1], "fc2", count, c.shape(wide.layers[0].weights)[1] / (is_fused ? 2 : 1));
  const V x = c.reshape(single(context.input(0)), {tokens, hidden});
  const Routing routing = routed(context, single(context.input(1)), chosen_count);
  // Gathering copies weights, so that few tokens gain from it alone.
  const bool are_few = tokens * chosen_count < count;
  const V sum =
      are_few ? by_chosen(context, x, routing, wide, chosen_count) : by_all(context, x, routing, wide, count);
  context.set_output(0, c.cast(c.reshape(sum, shape), c.dtype(context.input(0))));
}

/// Weights of integers of 4 or 8 bits, low ones first, at operand `at` [E,out,in/pack]; `scales` [E,out] or
/// [E,out,blocks]; `zeros` packed along the last dim of scales, or absent: the middle of the codes.
V dequantized_weights(NodeContext& context, size_t at, size_t scales_at, size_t zeros_at) {
  const int64_t bits = context.int_attr("expert_weight_bits", 4), pack = 8 / bits;
  const Tensor &codes = context.known(at, "weights"), &scales = context.known(scales_at, "scales");
  const ir::SymShape shape = codes.shape();
  const bool is_matrix = codes.dtype() == DType::kUInt8 && shape.size() == 3;
  const ir::SymShape lines = is_matrix ? ir::SymShape{shape[0], shape[1]} : ir::SymShape{};
  const bool fits = is_matrix && scales.shape().size() >= 2 &&
                    ir::SymShape(scales.shape().begin(), scales.shape().begin() + 2) == lines;
  if (!fits || scales.num_elements() == 0)
    context.invalid("weights of shape " + to_string(shape) + " and scales of " + to_string(scales.shape()));
  const ir::SymInt columns = context.product(shape[2], pack), rows = num_elements(lines);
  const ir::SymInt blocks = scales.num_elements() / rows, size = (columns + blocks - 1) / blocks;
  if (context.product(rows, columns) > kMaxTensorBytes / 8) context.invalid("the weights are too large");
  const Tensor* zeros = context.has_input(zeros_at) ? &context.known(zeros_at, "zero_points") : nullptr;
  // A line of zero points: the blocks of a row, or, of one block a row, the rows of an expert.
  const ir::SymInt a_line = blocks > 1 || scales.shape().size() == 3 ? blocks : shape[1];
  const int64_t line_bytes = (a_line + pack - 1) / pack;
  if (zeros != nullptr && zeros->num_elements() != rows * blocks / a_line * line_bytes)
    context.invalid("zero_points have " + std::to_string(zeros->num_elements()) + " bytes");
  Tensor result(DType::kFloat32, {shape[0], shape[1], columns});
  const std::span<float> values = result.values<float>();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t block = row * blocks + column / size;
      int64_t zero = int64_t{1} << (bits - 1);
      if (zeros != nullptr) zero = unpacked(*zeros, block / a_line * line_bytes, block % a_line, bits);
      const auto code = static_cast<double>(unpacked(codes, row * shape[2], column, bits) - zero);
      values[static_cast<size_t>(row * columns + column)] =
          static_cast<float>(code * scales.element_as_double(block));
    }
  }
  return context.constant(std::move(result));
}

}  // namespace

// input [...,hidden], router_probs [T,E], which are logits, then weights and bias of fc1, fc2 and fc3.
void convert_moe(NodeContext& context) {
  Experts experts;
  for (size_t i = 0; i < experts.layers.size(); ++i)
    experts.layers[i] = {context.optional_input(2 + 2 * i), context.optional_input(3 + 2 * i)};
  context.input(2);
  context.input(4);
  set_mixture(context, experts);
}

// The same with weights, scales and bias of each layer, and the zero points of all three behind them.
void convert_qmoe(NodeContext& context) {
  Experts experts;
  for (size_t i = 0; i < experts.layers.size(); ++i) {
    const size_t at = 2 + 3 * i;
    if (i == 2 && !context.has_input(at)) continue;
    experts.layers[i] = {dequantized_weights(context, at, at + 1, 11 + i), context.optional_input(at + 2)};
  }
  set_mixture(context, experts);
}

}  // namespace tensormill::frontend::onnx
