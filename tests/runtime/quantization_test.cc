#include "runtime/base/quantization.h"

#include <gtest/gtest.h>

#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill {
namespace {

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  const auto* first = static_cast<const T*>(tensor.data());
  return {first, first + tensor.num_elements()};
}

TEST(Quantization, GoesToTheNearestIntegerAndStaysInRange) {
  const std::vector<float> real = {0,
                                   0.25F,
                                   0.75F,
                                   -0.25F,
                                   1e9F,
                                   -1e9F,
                                   std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::quiet_NaN()};
  const Tensor from = Tensor::from<float>({8}, real);
  EXPECT_EQ(values_of<int8_t>(quantize(from, {0.5, 3}, DType::kInt8)),
            (std::vector<int8_t>{3, 3, 5, 3, 127, -128, 127, -128}));
  EXPECT_EQ(values_of<uint8_t>(quantize(from, {0.5, 128}, DType::kUInt8)),
            (std::vector<uint8_t>{128, 128, 130, 128, 255, 0, 255, 0}));
  EXPECT_THROW(quantize(from, {1, 0}, DType::kInt64), Error);
}

TEST(Quantization, OfRealNumbersThatIntegersStandForGivesThem) {
  std::vector<int8_t> all;
  for (int value = -128; value < 128; ++value) all.push_back(static_cast<int8_t>(value));
  const Tensor integers = Tensor::from<int8_t>({256}, all);
  const Quantization quantization{0.0039, -7};
  const Tensor real = dequantize({integers.dtype(), integers.shape(), integers.data()}, quantization);
  EXPECT_FLOAT_EQ(values_of<float>(real)[0], 0.0039F * -121);
  EXPECT_EQ(values_of<int8_t>(quantize(real, quantization, DType::kInt8)), all);
}

TEST(Quantization, AsJson) {
  const Quantization quantization{0.1, -3};
  EXPECT_EQ(quantization_from_json(quantization_to_json(quantization)), quantization);
  for (const char* text : {"1", "{}", R"({"scale":1})", R"({"scale":0,"zero_point":0})",
                           R"({"scale":-1,"zero_point":0})", R"({"scale":1,"zero_point":0.5})",
                           R"({"scale":"1","zero_point":0})", R"({"scale":1,"zero_point":0,"axis":1})"})
    EXPECT_THROW(quantization_from_json(parse_json(text)), Error) << text;
}

}  // namespace
}  // namespace tensormill
