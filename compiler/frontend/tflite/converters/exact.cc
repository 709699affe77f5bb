#include "compiler/frontend/tflite/converters/exact.h"

#include <algorithm>
#include <cmath>

namespace tensormill::frontend::tflite {

Int8Scale ExactNode::scale_of(const Tensor& tensor, const char* what, size_t index) const {
  const Quantization& from = tensor.quantization;
  const std::string name = what + (" " + std::to_string(index));
  if (tensor.type != TensorType::kInt8 || from.scale.empty())
    node_.unsupported("quantized exact", name + " is " + std::string(type_name(tensor.type)) +
                                             ": int8 with a scale alone has an exact form");
  if (from.scale.size() != 1 || from.details.index() != 0)
    node_.unsupported("quantized exact", name + " has several scales");
  const int64_t zero = from.zero_point.empty() ? 0 : from.zero_point.front();
  if (zero < -128 || zero > 127 || !(from.scale[0] > 0) || !std::isfinite(from.scale[0]))
    node_.invalid(name + " has a scale of " + std::to_string(from.scale[0]) + " and a zero point of " +
                  std::to_string(zero));
  return {from.scale[0], static_cast<int32_t>(zero)};
}

V ExactNode::centered(size_t index) {
  const int32_t zero = input(index).zero;
  return node_.pointwise(node_.stored(index), [&](V x) {
    const V wide = c.cast(x, DType::kFloat64);
    return zero == 0 ? wide : c.minus(wide, zero);
  });
}

ExactNode::Range ExactNode::range(Activation activation) const {
  const Int8Scale to = output();
  const auto quantized = [&](float value) {
    const float steps = std::round(value / to.scale);
    return static_cast<int32_t>(std::clamp(to.zero + static_cast<double>(steps), -1e6, 1e6));
  };
  Range range;
  const auto keep = [&](float low, float high) {
    range.low = std::max(range.low, quantized(low));
    if (std::isfinite(high)) range.high = std::min(range.high, quantized(high));
  };
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      keep(0, INFINITY);
      break;
    case Activation::kRelu6:
      keep(0, 6);
      break;
    case Activation::kReluN1To1:
      keep(-1, 1);
      break;
    case Activation::kTanh:
    case Activation::kSignBit:
      node_.unsupported("fused_activation_function", "it has no exact form");
  }
  return range;
}

void ExactNode::set(V integers, Activation activation) {
  const Range kept = range(activation);
  const int32_t zero = output().zero;
  node_.set_stored(0, node_.pointwise(integers, [&](V x) {
    const V moved = zero == 0 ? x : c.plus(x, zero);
    return c.cast(c.clip(moved, kept.low, kept.high), DType::kInt8);
  }));
}

void ExactNode::set_by_table(const std::function<int32_t(int32_t)>& compute, Activation activation) {
  constexpr int32_t kLeast = -128, kCount = 256;
  const Int8Scale from = input(0), to = output();
  const Range kept = range(activation);
  ::tensormill::Tensor table(DType::kInt8, {kCount});
  for (int32_t i = 0; i < kCount; ++i) {
    const int64_t result = int64_t{compute(i + kLeast - from.zero)} + to.zero;
    table.set_element_int(i, std::clamp<int64_t>(result, kept.low, kept.high));
  }
  const V values = node_.constant(std::move(table));
  node_.set_stored(0, node_.pointwise(node_.stored(0), [&](V q) {
    return c.gather(values, c.minus(c.cast(q, DType::kInt64), kLeast), 0);
  }));
}

}  // namespace tensormill::frontend::tflite
