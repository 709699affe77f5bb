#include "compiler/passes/quantized/quantized.h"

#include <cmath>

#include "compiler/passes/match.h"
#include "compiler/passes/quantized/byte_chains.h"
#include "compiler/passes/values/constant_value.h"

namespace tensormill::passes {

namespace {

/// By how much the scale of a bias may differ from the product of the other two, in which models round it.
constexpr double kScaleTolerance = 1e-6;

std::optional<Tensor> constant_of(const ir::Graph& graph, ir::ValueId value) {
  return constant_by(graph, value, {"cast", "sub", "reshape", "mul"});
}

/// a * s as {a, s} with a constant s.
struct ScaledValue {
  ir::ValueId value;
  Tensor scale;
};
std::optional<ScaledValue> match_scaled(const ir::Graph& graph, ir::ValueId value) {
  const ir::Node* mul = match(graph, value, "mul");
  if (mul == nullptr || graph.value(value).type.dtype != DType::kFloat32) return std::nullopt;
  std::optional<Tensor> scale = constant_of(graph, mul->inputs[1]);
  if (!scale) return std::nullopt;
  return ScaledValue{mul->inputs[0], std::move(*scale)};
}

/// What is cast to float32, or to int32 and so on.
const ir::Node* match_widened(const ir::Graph& graph, ir::ValueId value) {
  const ir::Node* cast = match(graph, value, "cast");
  return cast != nullptr && is_byte(graph.value(cast->inputs[0]).type.dtype) ? cast : nullptr;
}

/// `values` as one for each of `count`, or nothing where they vary along something else than dimension
/// `axis`.
std::optional<Tensor> along_axis(const Tensor& values, size_t rank, size_t axis, int64_t count) {
  Tensor result(DType::kFloat32, {count});
  const Shape& shape = values.shape();
  const int64_t given = values.num_elements();
  if (given != 1) {
    if (given != count || shape.size() > rank || rank - shape.size() > axis) return std::nullopt;
    if (shape[axis - (rank - shape.size())] != count) return std::nullopt;
  }
  for (int64_t i = 0; i < count; ++i) result.set_element(i, values.element_as_double(given == 1 ? 0 : i));
  return result;
}

/// The constant (q - zero) as int8, where it fits.
std::optional<Tensor> as_int8(const Tensor& values) {
  Tensor result(DType::kInt8, values.shape());
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const double value = values.element_as_double(i);
    if (!(value >= -128 && value <= 127) || value != std::floor(value)) return std::nullopt;
    result.set_element_int(i, static_cast<int64_t>(value));
  }
  return result;
}

/// The constant (q - zero) as bytes, with an offset for each index of `axis` where some do not fit.
std::optional<OffsetBytes> as_bytes(const Tensor& values, size_t axis) {
  if (std::optional<Tensor> fitting = as_int8(values)) return OffsetBytes{*std::move(fitting), std::nullopt};
  const Shape& shape = values.shape();
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const auto index_of = [&](int64_t i) { return static_cast<size_t>(i / inner % shape[axis]); };
  std::vector<double> low(static_cast<size_t>(shape[axis]), 0);
  for (int64_t i = 0; i < values.num_elements(); ++i)
    low[index_of(i)] = std::min(low[index_of(i)], values.element_as_double(i));
  Tensor offset(DType::kInt32, {shape[axis]}), moved(DType::kFloat32, shape);
  for (int64_t i = 0; i < shape[axis]; ++i) {
    const double least = low[static_cast<size_t>(i)];
    if (!(least >= -255)) return std::nullopt;
    offset.set_element_int(i, -128 - static_cast<int64_t>(least));
  }
  for (int64_t i = 0; i < values.num_elements(); ++i)
    moved.set_element(
        i, values.element_as_double(i) + offset.element_as_double(static_cast<int64_t>(index_of(i))));
  std::optional<Tensor> w = as_int8(moved);
  return w ? std::optional<OffsetBytes>({*std::move(w), std::move(offset)}) : std::nullopt;
}

}  // namespace

std::optional<Dequantized> match_dequantized(const ir::Graph& graph, ir::ValueId value) {
  const std::optional<ScaledValue> scaled = match_scaled(graph, value);
  if (!scaled || scaled->scale.num_elements() != 1) return std::nullopt;
  const float scale = static_cast<float>(scaled->scale.element_as_double(0));
  // With every byte's value finite, equal bytes and equal values are the same.
  if (!(scale > 0) || !std::isfinite(scale * 255)) return std::nullopt;
  if (const ir::Node* cast = match_widened(graph, scaled->value))
    return Dequantized{cast->inputs[0], 0, scale};
  const ir::Node* sub = match(graph, scaled->value, "sub");
  const ir::Node* cast = sub == nullptr ? nullptr : match_widened(graph, sub->inputs[0]);
  if (cast == nullptr) return std::nullopt;
  const std::optional<Tensor> zero = constant_of(graph, sub->inputs[1]);
  if (!zero || zero->num_elements() != 1) return std::nullopt;
  const double offset = zero->element_as_double(0);
  const bool is_signed = graph.value(cast->inputs[0]).type.dtype == DType::kInt8;
  if (offset != std::floor(offset) || offset < (is_signed ? -128 : 0) || offset > (is_signed ? 127 : 255))
    return std::nullopt;
  return Dequantized{cast->inputs[0], offset, scale};
}

std::optional<Centered> match_centered(const ir::Graph& graph, ir::ValueId value) {
  if (const ir::Node* cast = match_widened(graph, value)) return Centered{cast->inputs[0], ir::kAbsent, 0};
  const ir::Node* sub = match(graph, value, "sub");
  const ir::Node* cast = sub == nullptr ? nullptr : match_widened(graph, sub->inputs[0]);
  if (cast == nullptr || num_elements(graph.value(sub->inputs[1]).type.shape) != 1) return std::nullopt;
  if (graph.value(sub->inputs[0]).type != graph.value(value).type) return std::nullopt;
  Centered found{cast->inputs[0], sub->inputs[1], std::nullopt};
  if (const std::optional<Tensor> zero = constant_of(graph, sub->inputs[1])) {
    const double known = zero->element_as_double(0);
    if (std::abs(known) > 255 || known != std::floor(known)) return std::nullopt;
    found.known = static_cast<int64_t>(known);
  }
  return found;
}

std::optional<OffsetBytes> match_bytes(const ir::Graph& graph, ir::ValueId value, size_t axis) {
  const std::optional<Tensor> constant = constant_of(graph, value);
  if (!constant || constant->shape().size() <= axis || constant->num_elements() == 0) return std::nullopt;
  return as_bytes(*constant, axis);
}

std::optional<DequantizedWeights> match_weights(const ir::Graph& graph, ir::ValueId value, size_t axis) {
  const std::optional<ScaledValue> scaled = match_scaled(graph, value);
  if (!scaled) return std::nullopt;
  const ir::Node* sub = match(graph, scaled->value, "sub");
  if (match_widened(graph, sub == nullptr ? scaled->value : sub->inputs[0]) == nullptr) return std::nullopt;
  const std::optional<Tensor> centered = constant_of(graph, scaled->value);
  if (!centered || centered->shape().size() <= axis || centered->num_elements() == 0) return std::nullopt;
  std::optional<OffsetBytes> bytes = as_bytes(*centered, axis);
  const std::optional<Tensor> scale =
      along_axis(scaled->scale, centered->shape().size(), axis, centered->shape()[axis]);
  if (!bytes || !scale) return std::nullopt;
  for (const float each : scale->values<float>()) {
    if (!(each > 0) || !std::isfinite(each)) return std::nullopt;
  }
  return DequantizedWeights{*std::move(bytes), *scale};
}

std::optional<DequantizedBias> match_bias(const ir::Graph& graph, ir::ValueId value, const Tensor& unit) {
  const int64_t count = unit.num_elements();
  const std::optional<Tensor> whole = constant_of(graph, value);
  if (!whole || whole->num_elements() != count || whole->dtype() != DType::kFloat32) return std::nullopt;
  DequantizedBias bias{std::nullopt, whole->reshaped({count})};
  const std::optional<ScaledValue> scaled = match_scaled(graph, value);
  if (!scaled) return bias;
  const std::optional<Tensor> q = constant_of(graph, scaled->value);
  if (!q || q->num_elements() != count) return bias;
  const std::optional<Tensor> scale =
      along_axis(scaled->scale.reshaped({scaled->scale.num_elements()}), 1, 0, count);
  if (!scale) return bias;
  Tensor integer(DType::kInt32, {count});
  for (int64_t i = 0; i < count; ++i) {
    const double wanted = unit.element_as_double(i), have = scale->element_as_double(i);
    const double multiple = q->element_as_double(i);
    if (std::abs(have - wanted) > kScaleTolerance * wanted || std::abs(multiple) > 1 << 24 ||
        multiple != std::floor(multiple))
      return bias;
    integer.set_element_int(i, static_cast<int64_t>(multiple));
  }
  bias.integer = integer;
  return bias;
}

}  // namespace tensormill::passes
