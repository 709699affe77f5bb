#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/dense_steps.h"

namespace tensormill::host_ops {
namespace {

constexpr const char* kWhat = R"({"what":"depth is {}, expected 0 to 9"})";

/// The number that comes out, for a condition of these elements.
float required(const Tensor& x, const std::vector<uint8_t>& holds, const char* attributes = kWhat,
               const std::vector<Tensor>& told = {}) {
  float result = -1;
  std::vector<TensorView> inputs = {{x.dtype(), x.shape(), x.data()},
                                    {DType::kBool, {static_cast<int64_t>(holds.size())}, holds.data()}};
  for (const Tensor& numbers : told) inputs.push_back({numbers.dtype(), numbers.shape(), numbers.data()});
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

TEST(Require, NumbersBesideItStandInTheirOrder) {
  const auto ints = [](std::vector<int64_t> values) {
    return Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values);
  };
  const auto said = [&](const char* what, const std::vector<Tensor>& told) -> std::string {
    try {
      required(number(7), {0}, what, told);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(said(R"({"what":"{} and {} of {}"})", {ints({2}), number(-0.5F), ints({3, -4})}),
            "2 and -0.5 of [3,-4]");
  EXPECT_EQ(said(R"({"what":"{} is {}"})", {ints({2})}), "2 is {}");
  EXPECT_EQ(said(R"({"what":"of {}"})", {ints({})}), "of []");
  EXPECT_EQ(said(R"({"what":"of {}"})", {ints(std::vector<int64_t>(17, 1))}),
            "of [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,...]");
  EXPECT_EQ(required(number(2), {1}, kWhat, {ints({1, 2})}), 2);
}

TEST(Require, PlansThatNoCompilerWritesAreRefused) {
  EXPECT_THROW(required(Tensor::from<float>({2}, std::vector<float>{1, 2}), {1}), Error);
  EXPECT_THROW(required(number(1), {}), Error);
  EXPECT_THROW(required(number(1), {0}, "{}"), Error);
  EXPECT_THROW(required(Tensor::from<int64_t>({1}, std::vector<int64_t>{1}), {1}), Error);
}

}  // namespace
}  // namespace tensormill::host_ops
