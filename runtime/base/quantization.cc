#include "runtime/base/quantization.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/error.h"

namespace tensormill {

namespace {

template <typename T>
void fill_quantized(const Tensor& real, const Quantization& quantization, Tensor& result) {
  const auto* from = static_cast<const float*>(real.data());
  auto* to = static_cast<T*>(result.data());
  for (int64_t i = 0; i < real.num_elements(); ++i) {
    const double whole =
        std::nearbyint(from[i] / quantization.scale) + static_cast<double>(quantization.zero_point);
    // What is no number has no place: the lowest one, as a conversion by saturation gives.
    to[i] = static_cast<T>(std::isnan(whole) ? double{std::numeric_limits<T>::min()}
                                             : std::clamp(whole, double{std::numeric_limits<T>::min()},
                                                          double{std::numeric_limits<T>::max()}));
  }
}

}  // namespace

Tensor quantize(const Tensor& real, const Quantization& quantization, DType dtype) {
  TM_CHECK(real.dtype() == DType::kFloat32, "quantize takes float32");
  Tensor result(dtype, real.shape());
  switch (dtype) {
    case DType::kInt8:
      fill_quantized<int8_t>(real, quantization, result);
      break;
    case DType::kUInt8:
      fill_quantized<uint8_t>(real, quantization, result);
      break;
    case DType::kInt16:
      fill_quantized<int16_t>(real, quantization, result);
      break;
    case DType::kInt32:
      fill_quantized<int32_t>(real, quantization, result);
      break;
    default:
      throw Error(ErrorCode::kInvalidTensor,
                  std::string(dtype_long_name(dtype)) + " has no quantized numbers");
  }
  return result;
}

Tensor dequantize(const TensorView& integers, const Quantization& quantization) {
  const Tensor view(integers.dtype, integers.shape, nullptr, const_cast<void*>(integers.data));
  Tensor result(DType::kFloat32, integers.shape);
  auto* to = static_cast<float*>(result.data());
  for (int64_t i = 0; i < view.num_elements(); ++i)
    to[i] = static_cast<float>(quantization.scale *
                               (view.element_as_double(i) - static_cast<double>(quantization.zero_point)));
  return result;
}

}  // namespace tensormill
