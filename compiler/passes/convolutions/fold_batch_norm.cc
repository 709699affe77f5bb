// batch_norm(x, scale, bias, mean, variance) at inference is x*s + t per channel, with s =
// scale/sqrt(variance + eps) and t = bias - mean*s. Behind a convolution whose weights are constant, s and t
// go into weights and bias; elsewhere a multiply and an add stay, which fuse into a neighbour: of float16 and
// bfloat16 in float32, as the operator computes, since x*s and t alone may be much larger than their sum.
// What is folded is computed in double; where the type of the constants does not hold it, or where mean*s is
// so much larger than what x*s + t comes to that the sum would lose too many digits, nothing is folded: x -
// mean loses none.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ir/patch.h"
#include "compiler/ops/map_layout.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

struct ScaleShift {
  std::vector<double> scale;
  std::vector<double> shift;
  std::vector<double> center;  ///< mean*s
  std::vector<double> size;    ///< of results: |scale| + |bias|, at one deviation from the mean
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
  const double epsilon = ops::attr_float(norm.attrs, "epsilon", 1e-5);
  for (int64_t c = 0; c < channels; ++c) {
    const double scale = at(1, c) / std::sqrt(at(4, c) + epsilon);
    // A degenerate statistic must stay where the model put it: folded into weights it would spread.
    if (!std::isfinite(scale)) return std::nullopt;
    result.scale.push_back(scale);
    result.shift.push_back(at(2, c) - at(3, c) * scale);
    result.center.push_back(at(3, c) * scale);
    result.size.push_back(std::fabs(at(1, c)) + std::fabs(at(2, c)));
  }
  return result;
}

/// Whether elements of `tensor` hold what was stored, but for its rounding: no infinities.
bool is_held(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (!std::isfinite(tensor.element_as_double(i))) return false;
  }
  return true;
}

/// The least number of the type that has all its digits.
double least_normal(DType dtype) {
  if (dtype == DType::kFloat16) return 0x1p-14;
  return dtype == DType::kFloat64 ? std::numeric_limits<double>::min()
                                  : static_cast<double>(std::numeric_limits<float>::min());
}

/// Whether all factors are numbers of the type with all their digits, or 0.
bool are_normal(DType dtype, const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](double value) { return value == 0 || std::fabs(value) >= least_normal(dtype); });
}

/// Where it is near the end of the type's range x*s can overflow though (x - mean)*s + bias does not.
bool is_far_from_overflow(DType dtype, const std::vector<double>& values) {
  const double largest = dtype == DType::kFloat64 ? std::numeric_limits<double>::max()
                                                  : static_cast<double>(std::numeric_limits<float>::max());
  return std::all_of(values.begin(), values.end(),
                     [&](double value) { return std::fabs(value) <= largest / 0x1p20; });
}

/// How many times the results' size the products may be from which they are left when the rest is taken off:
/// the logarithm is the number of bits that are lost. Types of 16 bits have eleven or eight.
double largest_loss(DType dtype) { return is_float(dtype) && dtype_info(dtype).bits == 16 ? 0x1p3 : 0x1p9; }

/// Whether x*s + t keeps the digits of (x - mean)*s + bias. `taken`: of mean*s, what x has in it for another
/// reason.
bool keeps_digits(DType dtype, const ScaleShift& fold, const std::vector<double>& taken) {
  for (size_t c = 0; c < fold.center.size(); ++c) {
    if (std::fabs(fold.center[c] - taken[c]) > largest_loss(dtype) * fold.size[c]) return false;
  }
  return true;
}

/// The output channel of each element of weights: axis 0 of a convolution's; a transposed one's are
/// [C,M/group,...], channel by channel of the input.
Tensor scaled_weights(const ir::Node& conv, const Tensor& weights, const std::vector<double>& scale) {
  Tensor result(weights.dtype(), weights.shape());
  const Shape& shape = weights.shape();
  const int64_t per_row = weights.num_elements() / shape[0];
  const int64_t groups = ops::attr_int(conv.attrs, "group", 1);
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
      ops::is_channels_last(conv->attrs) || reads[static_cast<size_t>(norm.inputs[0])] != 1)
    return false;
  const std::optional<Tensor>& weights = graph.value(conv->inputs[1]).constant;
  const bool has_bias = conv->inputs.size() > 2 && conv->inputs[2] != ir::kAbsent;
  if (!weights || weights->num_elements() == 0 || (has_bias && !graph.value(conv->inputs[2]).constant))
    return false;
  std::vector<double> bias = fold.shift, taken(bias.size(), 0);
  for (size_t c = 0; has_bias && c < bias.size(); ++c) {
    taken[c] =
        graph.value(conv->inputs[2]).constant->element_as_double(static_cast<int64_t>(c)) * fold.scale[c];
    bias[c] += taken[c];
  }
  const Tensor scaled = scaled_weights(*conv, *weights, fold.scale);
  const Tensor shift = channel_tensor(weights->dtype(), bias, {static_cast<int64_t>(bias.size())});
  if (!is_held(scaled) || !is_held(shift) || !are_normal(weights->dtype(), fold.scale) ||
      !is_far_from_overflow(weights->dtype(), bias) || !keeps_digits(weights->dtype(), fold, taken))
    return false;
  const std::string& name = graph.value(conv->inputs[1]).name;
  const ir::ValueId new_weights = patch.add_constant(name + ".scaled", scaled);
  const ir::ValueId new_bias = patch.add_constant(name + ".shift", shift);
  const std::vector<ir::ValueId> made =
      patch.add_node(conv->op, {conv->inputs[0], new_weights, new_bias}, conv->attrs,
                     merge_origins(conv->origins, norm.origins));
  patch.replace(norm.outputs[0], made[0]);
  return true;
}

void fold_into_scale(const ir::Graph& graph, ir::Patch& patch, const ir::Node& norm, const ScaleShift& fold) {
  const ir::ValueType& type = graph.value(norm.inputs[0]).type;
  const DType wide = type.dtype == DType::kFloat64 ? type.dtype : DType::kFloat32;
  if (!are_normal(wide, fold.scale) || !is_far_from_overflow(wide, fold.scale) ||
      !is_far_from_overflow(wide, fold.shift) ||
      !keeps_digits(wide, fold, std::vector<double>(fold.center.size(), 0)))
    return;
  Shape broadcast(type.shape.size() < 2 ? 1 : type.shape.size() - 1, 1);
  broadcast[0] = static_cast<int64_t>(fold.scale.size());
  const auto cast = [&](ir::ValueId value, DType from, DType to) {
    return from == to ? value : patch.add_node("cast", {value}, {{"to", to}}, norm.origins)[0];
  };
  const std::string& name = graph.value(norm.outputs[0]).name;
  const ir::ValueId scale = patch.add_constant(name + ".scale", channel_tensor(wide, fold.scale, broadcast));
  const ir::ValueId shift = patch.add_constant(name + ".shift", channel_tensor(wide, fold.shift, broadcast));
  const ir::ValueId x = cast(norm.inputs[0], type.dtype, wide);
  const ir::ValueId product = patch.add_node("mul", {x, scale}, {}, norm.origins)[0];
  const ir::ValueId sum = patch.add_node("add", {product, shift}, {}, norm.origins)[0];
  patch.replace(norm.outputs[0], cast(sum, wide, type.dtype));
}

}  // namespace

ir::Graph fold_batch_norm(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Patch patch(graph, "fold_batch_norm");
  const std::vector<int> reads = count_reads(graph);
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != "batch_norm" || ops::is_channels_last(node.attrs)) continue;
    const std::optional<ScaleShift> fold = constants_of(graph, node);
    if (!fold || fold_into_conv(graph, patch, node, *fold, reads)) continue;
    fold_into_scale(graph, patch, node, *fold);
  }
  return patch.apply();
}

}  // namespace tensormill::passes
