/// What integers of a model's input or output stand for. Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/tensor.h"

namespace tensormill {

/// real = scale * (q - zero_point); scale is positive and finite.
struct Quantization {
  double scale = 1;
  int64_t zero_point = 0;
  bool operator==(const Quantization&) const = default;
};
/// By the name of an input or output.
using Quantizations = std::map<std::string, Quantization>;

/// The nearest integer of `dtype` (ties to even) for each real number, at the ends of its range where it lies
/// outside. `dtype` is int8, uint8, int16 or int32; `real` is float32.
Tensor quantize(const Tensor& real, const Quantization& quantization, DType dtype);
/// The real numbers as float32. Any integer dtype.
Tensor dequantize(const TensorView& integers, const Quantization& quantization);

}  // namespace tensormill
