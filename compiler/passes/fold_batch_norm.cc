// batch_norm(x, scale, bias, mean, variance) at inference is x*s + t per channel, with s =
// scale/sqrt(variance + eps) and t = bias - mean*s. Behind a convolution whose weights are constant, s and t
// go into weights and bias; elsewhere a multiply and an add stay, which fuse into a neighbour.
#include <cmath>

#include "compiler/ir/patch.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

struct ScaleShift {
  std::vector<double> scale;
  std::vector<double> shift;
};

std::optional<ScaleShift> constants_of(const ir::Graph& graph, const ir::Node& norm) {
  for (size_t i = 1; i < 5; ++i) {
    const ir::Value& value = graph.value(norm.inputs[i]);
    if (!value.constant || !is_float(value.type.dtype)) return std::nullopt;
  }
  const auto at = [&](size_t input, int64_t channel) {
    return graph.value(norm.inputs[input]).constant->element_as_double(channel);
  };
  ScaleShift result;
  const int64_t channels = graph.value(norm.inputs[1]).constant->num_elements();
  const double epsilon = norm.attrs.has("epsilon") ? norm.attrs.float_of("epsilon") : 1e-5;
  for (int64_t c = 0; c < channels; ++c) {
    const double scale = at(1, c) / std::sqrt(at(4, c) + epsilon);
    // A degenerate statistic must stay where the model put it: folded into weights it would spread.
    if (!std::isfinite(scale)) return std::nullopt;
    result.scale.push_back(scale);
    result.shift.push_back(at(2, c) - at(3, c) * scale);
  }
  return result;
}

/// The output channel of each element of weights: axis 0 of a convolution's; a transposed one's are
/// [C,M/group,...], channel by channel of the input.
Tensor scaled_weights(const ir::Node& conv, const Tensor& weights, const std::vector<double>& scale) {
  Tensor result(weights.dtype(), weights.shape());
  const Shape& shape = weights.shape();
  const int64_t per_row = weights.num_elements() / shape[0];
  const int64_t groups = conv.attrs.has("group") ? conv.attrs.int_of("group") : 1;
  const auto channel = [&](int64_t element) {
    const int64_t row = element / per_row;
    if (conv.op == "conv") return row;
    return row / (shape[0] / groups) * shape[1] + element % per_row / (per_row / shape[1]);
  };
  for (int64_t i = 0; i < weights.num_elements(); ++i)
    result.set_element(i, weights.element_as_double(i) * scale[static_cast<size_t>(channel(i))]);
  return result;
}

Tensor channel_tensor(DType dtype, const std::vector<double>& values, Shape shape) {
  Tensor result(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) result.set_element(static_cast<int64_t>(i), values[i]);
  return result;
}

bool fold_into_conv(const ir::Graph& graph, ir::Patch& patch, const ir::Node& norm, const ScaleShift& fold,
                    const std::vector<int>& reads) {
  const ir::Node* conv = producer_of(graph, norm.inputs[0]);
  if (conv == nullptr || (conv->op != "conv" && conv->op != "conv_transpose") ||
      reads[static_cast<size_t>(norm.inputs[0])] != 1)
    return false;
  const std::optional<Tensor>& weights = graph.value(conv->inputs[1]).constant;
  const bool has_bias = conv->inputs.size() > 2 && conv->inputs[2] != ir::kAbsent;
  if (!weights || weights->num_elements() == 0 || (has_bias && !graph.value(conv->inputs[2]).constant))
    return false;
  std::vector<double> bias = fold.shift;
  for (size_t c = 0; has_bias && c < bias.size(); ++c) {
    bias[c] +=
        graph.value(conv->inputs[2]).constant->element_as_double(static_cast<int64_t>(c)) * fold.scale[c];
  }
  const std::string& name = graph.value(conv->inputs[1]).name;
  const ir::ValueId new_weights =
      patch.add_constant(name + ".scaled", scaled_weights(*conv, *weights, fold.scale));
  const ir::ValueId new_bias = patch.add_constant(
      name + ".shift", channel_tensor(weights->dtype(), bias, {static_cast<int64_t>(bias.size())}));
  const std::vector<ir::ValueId> made =
      patch.add_node(conv->op, {conv->inputs[0], new_weights, new_bias}, conv->attrs,
                     merge_origins(conv->origins, norm.origins));
  patch.replace(norm.outputs[0], made[0]);
  return true;
}

}  // namespace

ir::Graph fold_batch_norm(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Patch patch(graph, "fold_batch_norm");
  const std::vector<int> reads = count_reads(graph);
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != "batch_norm") continue;
    const std::optional<ScaleShift> fold = constants_of(graph, node);
    if (!fold || fold_into_conv(graph, patch, node, *fold, reads)) continue;
    const ir::ValueType& type = graph.value(node.inputs[0]).type;
    Shape broadcast(type.shape.size() < 2 ? 1 : type.shape.size() - 1, 1);
    broadcast[0] = static_cast<int64_t>(fold->scale.size());
    const std::string& name = graph.value(node.outputs[0]).name;
    const ir::ValueId scale =
        patch.add_constant(name + ".scale", channel_tensor(type.dtype, fold->scale, broadcast));
    const ir::ValueId shift =
        patch.add_constant(name + ".shift", channel_tensor(type.dtype, fold->shift, broadcast));
    const ir::ValueId product = patch.add_node("mul", {node.inputs[0], scale}, {}, node.origins)[0];
    patch.replace(node.outputs[0], patch.add_node("add", {product, shift}, {}, node.origins)[0]);
  }
  return patch.apply();
}

}  // namespace tensormill::passes
