#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/dense_steps.h"

namespace tensormill::host_ops {
namespace {

constexpr const char* kWhat = R"({"what":"depth is {}, expected 0 to 9"})";

/// The number that comes out, for a condition of these elements.
float required(const Tensor& x, const std::vector<uint8_t>& holds, const char* attributes = kWhat) {
  float result = -1;
  const std::vector<TensorView> inputs = {{x.dtype(), x.shape(), x.data()},
                                          {DType::kBool, {static_cast<int64_t>(holds.size())}, holds.data()}};
  const std::vector<void*> outputs = {&result};
  const std::vector<size_t> bytes = {sizeof(result)};
  require({inputs, outputs, bytes, attributes});
  return result;
}

Tensor number(float value) { return Tensor::from<float>({1}, std::vector<float>{value}); }

TEST(Require, ANumberThatHoldsIsHandedOn) { EXPECT_EQ(required(number(2.5F), {1}), 2.5F); }

TEST(Require, ANumberThatDoesNotIsNamed) {
  try {
    required(number(-2.5F), {0});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTensorData);
    EXPECT_STREQ(error.what(), "depth is -2.5, expected 0 to 9");
  }
  EXPECT_THROW(required(number(1), {0}, R"({"what":"no number"})"), Error);
}

TEST(Require, PlansThatNoCompilerWritesAreRefused) {
  EXPECT_THROW(required(Tensor::from<float>({2}, std::vector<float>{1, 2}), {1}), Error);
  EXPECT_THROW(required(number(1), {}), Error);
  EXPECT_THROW(required(number(1), {0}, "{}"), Error);
  EXPECT_THROW(required(Tensor::from<int64_t>({1}, std::vector<int64_t>{1}), {1}), Error);
}

}  // namespace
}  // namespace tensormill::host_ops
