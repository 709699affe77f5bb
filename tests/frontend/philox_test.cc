#include "compiler/frontend/onnx/graph/philox.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tensormill::frontend::onnx {
namespace {

// The paper's own known answers.
TEST(Philox, KnownAnswers) {
  const std::array<uint32_t, 4> zeros = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), zeros);
  const uint32_t all = 0xffffffff;
  const std::array<uint32_t, 4> ones = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  EXPECT_EQ(philox({all, all, all, all}, {all, all}), ones);
}

TEST(RandomSequence, HasTheMomentsOfItsDistributions) {
  const RandomSequence sequence(7);
  constexpr int64_t kCount = 20000;
  double sum = 0, square = 0, normal_sum = 0, normal_square = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double u = sequence.uniform(i), n = sequence.normal(i);
    ASSERT_TRUE(u >= 0 && u < 1 && std::isfinite(n));
    sum += u;
    square += u * u;
    normal_sum += n;
    normal_square += n * n;
  }
  // Five standard errors of each mean.
  EXPECT_NEAR(sum / kCount, 0.5, 5 * 0.289 / std::sqrt(kCount));
  EXPECT_NEAR(square / kCount, 1.0 / 3, 5 * 0.298 / std::sqrt(kCount));
  EXPECT_NEAR(normal_sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(normal_square / kCount, 1, 5 * std::sqrt(2.0 / kCount));
}

TEST(RandomSequence, KeysAndPositionsDiffer) {
  EXPECT_NE(RandomSequence(1).uniform(0), RandomSequence(2).uniform(0));
  EXPECT_NE(RandomSequence(1).uniform(0), RandomSequence(1).uniform(1));
  EXPECT_NE(RandomSequence(1).uniform(0), RandomSequence(1).uniform(int64_t{1} << 32));
  EXPECT_EQ(RandomSequence(3).normal(5), RandomSequence(3).normal(5));
}

}  // namespace
}  // namespace tensormill::frontend::onnx
