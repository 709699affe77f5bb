/// The check that every compiled kernel passes before it is published: right kernels pass, wrong ones do not.
#include "compiler/driver/verify_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "tests/driver/support.h"

namespace tensormill::driver_test {
namespace {

constexpr int64_t kCount = 100;

/// y = |x| over f32, as code generation could have made it: right, or wrong in the way that `at` says.
template <int64_t at, int kind>
int32_t abs_kernel(const tm_call* call) {
  const auto* x = static_cast<const float*>(call->buffers[0]);
  auto* y = static_cast<float*>(call->buffers[1]);
  for (int64_t i = 0; i < kCount; ++i) y[i] = std::fabs(x[i]);
  if (kind == 1) y[at] += 1e-5f;
  if (kind == 2) y[at] = NAN;
  if (kind == 3) return TM_INDEX_OUT_OF_RANGE;
  if (kind == 4) y[at] = -y[at];
  return TM_OK;
}

/// y = x[i] + 1 over i64, wrong by one in the last element when `wrong`.
template <bool wrong>
int32_t increment_kernel(const tm_call* call) {
  const auto* x = static_cast<const int64_t*>(call->buffers[0]);
  auto* y = static_cast<int64_t*>(call->buffers[1]);
  for (int64_t i = 0; i < kCount; ++i) y[i] = x[i] + 1;
  if (wrong) y[kCount - 1] += 1;
  return TM_OK;
}

/// rows[i] of a table of 3: without its check of the indices.
int32_t unchecked_gather(const tm_call* call) {
  const auto* table = static_cast<const float*>(call->buffers[0]);
  const auto* rows = static_cast<const int64_t*>(call->buffers[1]);
  auto* y = static_cast<float*>(call->buffers[2]);
  for (int64_t i = 0; i < 5; ++i) y[i] = table[rows[i] >= 0 && rows[i] < 3 ? rows[i] : 0];
  return TM_OK;
}

/// rows[i] of a table of 2, with its check of the indices; `wrong`: of the other row.
template <bool wrong>
int32_t gather_of_two(const tm_call* call) {
  const auto* table = static_cast<const float*>(call->buffers[0]);
  const auto* rows = static_cast<const int64_t*>(call->buffers[1]);
  auto* y = static_cast<float*>(call->buffers[2]);
  for (int64_t i = 0; i < 5; ++i) {
    if (rows[i] < 0 || rows[i] > 1) return TM_INDEX_OUT_OF_RANGE;
    y[i] = table[wrong ? 1 - rows[i] : rows[i]];
  }
  return TM_OK;
}

constexpr int64_t kTerms = 768, kSums = 128;

/// y[i] = log of the sum of x[i], summed from the front; `wrong`: without the last term.
template <bool wrong>
int32_t log_of_sums(const tm_call* call) {
  const auto* x = static_cast<const float*>(call->buffers[0]);
  auto* y = static_cast<float*>(call->buffers[1]);
  for (int64_t i = 0; i < kSums; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < kTerms - (wrong ? 1 : 0); ++k) sum += x[i * kTerms + k];
    y[i] = std::log(sum);
  }
  return TM_OK;
}

constexpr int64_t kLongTerms = 10'000, kLongSums = 64;

/// y[i] = the sine of the sum of x[i], summed in lanes; `wrong`: without the last hundredth.
template <bool wrong>
int32_t sine_of_sums(const tm_call* call) {
  constexpr int64_t kLanes = 16;
  const auto* x = static_cast<const float*>(call->buffers[0]);
  auto* y = static_cast<float*>(call->buffers[1]);
  for (int64_t i = 0; i < kLongSums; ++i) {
    float lanes[kLanes] = {}, sum = 0;
    for (int64_t k = 0; k < kLongTerms - (wrong ? kLongTerms / 100 : 0); ++k)
      lanes[k % kLanes] += x[i * kLongTerms + k];
    for (const float lane : lanes) sum += lane;
    y[i] = std::sin(sum);
  }
  return TM_OK;
}

/// x - tanh(x), where tanh is off by a few units of its last place; `wrong`: by a thousandth.
template <bool wrong>
int32_t rest_of_tanh(const tm_call* call) {
  const auto* x = static_cast<const float*>(call->buffers[0]);
  auto* y = static_cast<float*>(call->buffers[1]);
  const float near = std::tanh(x[0]) * (1 + 3 * 0x1p-23F);
  y[0] = x[0] - (wrong ? near * 1.001F : near);
  return TM_OK;
}

constexpr int64_t kMapChannels = 3, kMapSide = 640;

/// y = |x| over f32[1,3,640,640], with -1 from element `from` to element `to`; or nothing there.
template <int64_t from, int64_t to, bool writes = true>
int32_t abs_of_map(const tm_call* call) {
  const auto* x = static_cast<const float*>(call->buffers[0]);
  auto* y = static_cast<float*>(call->buffers[1]);
  for (int64_t i = 0; i < kMapChannels * kMapSide * kMapSide; ++i) {
    const bool is_right = i < from || i >= to;
    if (is_right || writes) y[i] = is_right ? std::fabs(x[i]) : -1;
  }
  return TM_OK;
}

plan::Kernel kernel_of(std::string_view body) {
  const ir::Graph graph = parse("graph \"one\" " + std::string(body));
  return plan::extract_kernels(graph).kernels.at(0);
}

const std::string kAbs = "(%x: f32[100]) {\n  %y: f32[100] = abs(%x)\n  return %y\n}\n";
const std::string kIncrement =
    "(%x: i64[100]) {\n  %one = const i64[] {1}\n  %y: i64[100] = add(%x, %one)\n  return %y\n}\n";

void expect_wrong(const plan::Kernel& kernel, tm_kernel entry, const std::string& words) {
  try {
    driver::verify_kernel(kernel, entry, {}, std::vector<const Tensor*>(3, nullptr));
    ADD_FAILURE() << "a wrong kernel passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kWrongAnswer);
    EXPECT_THAT(error.message(), testing::HasSubstr(kernel.symbol));
    EXPECT_THAT(error.message(), testing::HasSubstr(words));
  }
}

TEST(VerifyKernel, ARightKernelPasses) {
  const std::vector<const Tensor*> none(1, nullptr);
  EXPECT_NO_THROW(driver::verify_kernel(kernel_of(kAbs), &abs_kernel<0, 0>, {}, none));
  EXPECT_NO_THROW(driver::verify_kernel(kernel_of(kIncrement), &increment_kernel<false>, {}, none));
}

TEST(VerifyKernel, OneWrongElementAnywhereIsFound) {
  const plan::Kernel kernel = kernel_of(kAbs);
  expect_wrong(kernel, &abs_kernel<0, 1>, "element 0");
  expect_wrong(kernel, &abs_kernel<57, 1>, "element 57");
  expect_wrong(kernel, &abs_kernel<kCount - 1, 1>, "element 99");
  expect_wrong(kernel, &abs_kernel<99, 2>, "nan");
  expect_wrong(kernel, &abs_kernel<31, 4>, "element 31");
  expect_wrong(kernel_of(kIncrement), &increment_kernel<true>, "element 99");
}

TEST(VerifyKernel, WhatARoundingOfTheInputsMovesMayDifferByAsMuch) {
  const plan::Kernel kernel = kernel_of(
      "(%x: f32[128,768]) {\n  %y: f32[128] = reduce_log_sum(%x) {axes: ints[1], keepdims: 0}\n"
      "  return %y\n}\n");
  const std::vector<const Tensor*> none(1, nullptr);
  EXPECT_NO_THROW(driver::verify_kernel(kernel, &log_of_sums<false>, {}, none));
  expect_wrong(kernel, &log_of_sums<true>, "the reference gives");
}

TEST(VerifyKernel, SinesOfLongSumsMayDifferByWhatTheSumsDo) {
  const plan::Kernel kernel = kernel_of(
      "(%x: f32[64,10000]) {\n  %y: f32[64] = fused(%x) (%x: f32[64,10000]) {\n"
      "    %s: f32[64] = reduce_sum(%x) {axes: ints[1], keepdims: 0}\n    %z: f32[64] = sin(%s)\n"
      "    return %z\n  }\n  return %y\n}\n");
  const std::vector<const Tensor*> none(1, nullptr);
  EXPECT_NO_THROW(driver::verify_kernel(kernel, &sine_of_sums<false>, {}, none));
  expect_wrong(kernel, &sine_of_sums<true>, "the reference gives");
}

TEST(VerifyKernel, WhatIsLeftOfADifferenceMayBeOffAsItsTermsAre) {
  const plan::Kernel kernel = kernel_of(
      "(%x: f32[1]) {\n  %y: f32[1] = fused(%x) (%x: f32[1]) {\n    %t: f32[1] = tanh(%x)\n"
      "    %z: f32[1] = sub(%x, %t)\n    return %z\n  }\n  return %y\n}\n");
  const std::vector<const Tensor*> none(1, nullptr);
  EXPECT_NO_THROW(driver::verify_kernel(kernel, &rest_of_tanh<false>, {}, none));
  expect_wrong(kernel, &rest_of_tanh<true>, "the reference gives");
}

TEST(VerifyKernel, PartsOfLargeMapsShowWrongKernels) {
  const plan::Kernel kernel =
      kernel_of("(%x: f32[1,3,640,640]) {\n  %y: f32[1,3,640,640] = abs(%x)\n  return %y\n}\n");
  const std::vector<const Tensor*> none(1, nullptr);
  const auto fails = [&](tm_kernel entry, const std::string& words) {
    try {
      driver::verify_kernel(kernel, entry, {}, none, driver::Compares::kParts);
      ADD_FAILURE() << "a wrong kernel passed: " << words;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), testing::HasSubstr(words));
    }
  };
  constexpr int64_t kRow = kMapSide, kMap = kMapSide * kMapSide, kAll = kMapChannels * kMap;
  EXPECT_NO_THROW(driver::verify_kernel(kernel, &abs_of_map<0, 0>, {}, none, driver::Compares::kParts));
  const std::vector<driver::ComparedPart> parts = driver::parts_to_compare(kernel);
  ASSERT_GT(parts.size(), 1U);
  int64_t rows = 0;
  for (const driver::ComparedPart& each : parts) rows += each.part->end - each.part->begin;
  EXPECT_LT(rows, kMapSide / 4);
  // Each corner, both ends of a row, the ends of a channel's rows.
  fails(&abs_of_map<0, 1>, "element 0 ");
  fails(&abs_of_map<kAll - 1, kAll>, "element 1228799 ");
  fails(&abs_of_map<kRow - 1, kRow>, "element 639 ");
  fails(&abs_of_map<2 * kMap - kRow, 2 * kMap - kRow + 1>, "element 818560 ");
  fails(&abs_of_map<kMap + 5 * kRow + 7, kMap + 5 * kRow + 8>, "element 412807 ");
  // A channel, most of one, and what is not written between the parts.
  fails(&abs_of_map<kMap, 2 * kMap>, "the reference gives");
  fails(&abs_of_map<8 * kRow, 632 * kRow>, "the reference gives");
  for (const driver::ComparedPart& each : parts)
    ASSERT_TRUE(each.part->begin > 300 || each.part->end <= 300) << "a part has the row below";
  fails(&abs_of_map<300 * kRow, 300 * kRow + 3, false>, "element 192000 is not written");
  // Of one element there the whole comparison alone knows.
  expect_wrong(kernel, &abs_of_map<300 * kRow, 300 * kRow + 1>, "element 192000 ");
}

TEST(VerifyKernel, WhatIsCastToSixteenBitsMayRoundTheOtherWay) {
  const plan::Kernel kernel = kernel_of(
      "(%x: f32[4,8]) {\n  %y: f16[4,8] = fused(%x) (%x: f32[4,8]) {\n"
      "    %s: f32[4,8] = softmax(%x) {axis: 1}\n    %c: f16[4,8] = cast(%s) {to: f16}\n    return %c\n  }\n"
      "  return %y\n}\n");
  EXPECT_GE(kernel.tolerance, 0x1p-10);
}

/// A sum of sixteen bits rounds what a rounding of its operand moves.
TEST(VerifyKernel, SumsBehindWhatRoundsToSixteenBitsMayRoundTheOtherWayToo) {
  const plan::Kernel kernel = kernel_of(
      "(%x: f16[4,8], %r: f16[4,8]) {\n  %y: f16[4,8] = fused(%x, %r) (%x: f16[4,8], %r: f16[4,8]) {\n"
      "    %s: f16[4,8] = softmax(%x) {axis: 1}\n    %c: f16[4,8] = add(%s, %r)\n    return %c\n  }\n"
      "  return %y\n}\n");
  EXPECT_GE(kernel.tolerance, 2 * 0x1p-10);
}

TEST(VerifyKernel, ErrorsOnGoodDataAndSilenceOnBadDataAreWrong) {
  expect_wrong(kernel_of(kAbs), &abs_kernel<0, 3>, "for data that the reference accepts");
  const plan::Kernel gather =
      kernel_of("(%t: f32[3], %i: i64[5]) {\n  %y: f32[5] = gather(%t, %i) {axis: 0}\n  return %y\n}\n");
  Tensor rows = Tensor::zeros(DType::kInt64, {5});
  rows.set_element_int(3, 3);
  const std::vector<const Tensor*> constants = {nullptr, &rows};
  try {
    driver::verify_kernel(gather, &unchecked_gather, {}, constants);
    ADD_FAILURE() << "an unchecked index passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kWrongAnswer);
    EXPECT_THAT(error.message(), testing::HasSubstr("refuses the data"));
  }
  rows.set_element_int(3, 2);
  EXPECT_NO_THROW(driver::verify_kernel(gather, &unchecked_gather, {}, constants));
}

TEST(VerifyKernel, ValuesBehindIndicesOfFewRowsAreComparedToo) {
  const plan::Kernel gather =
      kernel_of("(%t: f32[2], %i: i64[5]) {\n  %y: f32[5] = gather(%t, %i) {axis: 0}\n  return %y\n}\n");
  const std::vector<const Tensor*> none(2, nullptr);
  EXPECT_FALSE(driver::make_reference(gather, none).refusal.empty());
  EXPECT_EQ(driver::make_accepted_reference(gather, none).outputs.size(), 1U);
  EXPECT_NO_THROW(driver::verify_kernel(gather, &gather_of_two<false>, {}, none));
  expect_wrong(gather, &gather_of_two<true>, "the reference gives");
}

TEST(VerifyKernel, SeededDataIsReproducibleAndVaried) {
  const Tensor a = driver::seeded_tensor({DType::kFloat32, {1000}}, 1);
  const Tensor b = driver::seeded_tensor({DType::kFloat32, {1000}}, 1);
  const Tensor c = driver::seeded_tensor({DType::kFloat32, {1000}}, 2);
  double low = 1, high = -1;
  int equal = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.element_as_double(i), b.element_as_double(i));
    equal += a.element_as_double(i) == c.element_as_double(i) ? 1 : 0;
    low = std::min(low, a.element_as_double(i));
    high = std::max(high, a.element_as_double(i));
  }
  EXPECT_LT(equal, 5);
  EXPECT_LT(low, -0.9);
  EXPECT_GT(high, 0.9);
}

}  // namespace
}  // namespace tensormill::driver_test
