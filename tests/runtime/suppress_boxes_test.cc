// Suppression of boxes in rooms of a known size: ties, softened scores, and numbers that are none.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/tensor.h"
#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {
namespace {

struct SuppressedBoxes {
  std::vector<int32_t> places;
  std::vector<float> scores;
  std::vector<int32_t> counts;
};

/// Of boxes along a line, a number each of where they begin, each of extent 10 by 1.
SuppressedBoxes kept_of(const std::vector<float>& starts, const std::vector<float>& scores, int64_t classes,
                        int64_t most, std::vector<double> limits) {
  std::vector<float> boxes;
  for (const float start : starts) boxes.insert(boxes.end(), {start, 0, start + 10, 1});
  const auto count = static_cast<int64_t>(starts.size());
  const Tensor at = Tensor::from<float>({count, 4}, boxes),
               of = Tensor::from<float>({classes, count}, scores);
  const Tensor bounds = Tensor::from<double>({static_cast<int64_t>(limits.size())}, limits);
  const std::vector<TensorView> inputs{{at.dtype(), at.shape(), at.data()},
                                       {of.dtype(), of.shape(), of.data()},
                                       {bounds.dtype(), bounds.shape(), bounds.data()}};
  const auto room = static_cast<size_t>(classes * most);
  SuppressedBoxes kept{std::vector<int32_t>(room), std::vector<float>(room),
                       std::vector<int32_t>(static_cast<size_t>(classes))};
  const std::vector<void*> outputs{kept.places.data(), kept.scores.data(), kept.counts.data()};
  const std::vector<size_t> bytes{room * 4, room * 4, kept.counts.size() * 4};
  find_host_op("suppress_boxes")({inputs, outputs, bytes, R"({"most": )" + std::to_string(most) + "}"});
  return kept;
}

using PlaceList = std::vector<int32_t>;
using ScoreList = std::vector<float>;

TEST(SuppressBoxes, OfEachClassWithZerosBehind) {
  // The first two share 9 of 11.
  const SuppressedBoxes kept =
      kept_of({0, 1, 40}, {0.5F, 0.9F, 0.7F, 0.1F, 0.1F, 0.3F}, 2, 3, {3, 0.5, 0.2, 0});
  EXPECT_EQ(kept.places, (PlaceList{1, 2, 0, 2, 0, 0}));
  EXPECT_EQ(kept.scores, (ScoreList{0.9F, 0.7F, 0, 0.3F, 0, 0}));
  EXPECT_EQ(kept.counts, (PlaceList{2, 1}));
}

TEST(SuppressBoxes, TheLimitsThemselves) {
  // Half of the union is shared: from the limit on a box goes; a score must be above its limit.
  const std::vector<float> starts = {0, 10.0F / 3}, scores = {1, 0.5F};
  EXPECT_EQ(kept_of(starts, scores, 1, 2, {2, 0.5, 0, 0}).counts, (PlaceList{1}));
  EXPECT_EQ(kept_of(starts, scores, 1, 2, {2, 0.51, 0, 0}).counts, (PlaceList{2}));
  EXPECT_EQ(kept_of(starts, scores, 1, 2, {2, 0.51, 0.5, 0}).counts, (PlaceList{1}));
  EXPECT_EQ(kept_of(starts, scores, 1, 2, {1, 0.51, 0, 0}).counts, (PlaceList{1}));
  // More than there is room for.
  EXPECT_EQ(kept_of(starts, scores, 1, 1, {1e300, 0.51, 0, 0}).counts, (PlaceList{1}));
}

TEST(SuppressBoxes, OfEqualScoresTheFirst) {
  EXPECT_EQ(kept_of({60, 0, 30, 1}, {0.5F, 0.5F, 0.5F, 0.5F}, 1, 4, {4, 0.5, 0, 0}).places,
            (PlaceList{0, 1, 2, 0}));
}

TEST(SuppressBoxes, SoftenedScoresWaitForTheirTurn) {
  const SuppressedBoxes kept = kept_of({0, 1, 40}, {0.9F, 0.8F, 0.7F}, 1, 3, {3, 1, 0.01, 0.5});
  EXPECT_EQ(kept.places, (PlaceList{0, 2, 1}));
  const float shared = 9.0F / 11;
  EXPECT_NEAR(kept.scores[2], 0.8F * std::exp(-shared * shared), 1e-6F);
  // A box without extent shares nothing, not even with itself, and is kept once.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(kept_of({nan, 0}, {0.9F, nan}, 1, 4, {4, 0.5, 0, 0}).counts, (PlaceList{1}));
}

TEST(SuppressBoxes, OtherOperandsAreAStrangersPlan) {
  EXPECT_THROW(kept_of({0}, {1}, 1, 1, {1, 0.5}), Error);
}

using Stays = std::vector<uint8_t>;

/// Which of two rows of three boxes stay, each of extent 10 by 1 from where it begins.
Stays stays_of(const std::vector<float>& starts, const std::vector<float>& scores,
               const std::vector<double>& limits, const std::vector<int64_t>& groups = {}) {
  std::vector<float> boxes;
  for (const float start : starts) boxes.insert(boxes.end(), {start, 0, start + 10, 1});
  const Tensor at = Tensor::from<float>({2, 3, 4}, boxes), of = Tensor::from<float>({2, 3}, scores),
               bounds = Tensor::from<double>({static_cast<int64_t>(limits.size())}, limits);
  std::vector<TensorView> inputs{{at.dtype(), at.shape(), at.data()},
                                 {of.dtype(), of.shape(), of.data()},
                                 {bounds.dtype(), bounds.shape(), bounds.data()}};
  const Shape shape{static_cast<int64_t>(groups.size()) / 3, 3};
  if (!groups.empty()) inputs.push_back({DType::kInt64, shape, groups.data()});
  Stays stays(6, 7);
  const std::vector<void*> outputs{stays.data()};
  const std::vector<size_t> bytes{stays.size()};
  find_host_op("keep_boxes")({inputs, outputs, bytes, "{}"});
  return stays;
}

TEST(KeepBoxes, OfEachRowTheBestOnesStay) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<float> starts = {0, 1, 40, 0, 1, 2}, scores = {0.5F, 0.9F, 0.7F, 0.9F, 0.2F, 0.3F};
  EXPECT_EQ(stays_of(starts, scores, {kInfinity, 0.5, -kInfinity, 0}), (Stays{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(stays_of(starts, scores, {kInfinity, 0.8, -kInfinity, 0}), (Stays{0, 1, 1, 1, 0, 1}));
  EXPECT_EQ(stays_of(starts, scores, {1, 0.8, -kInfinity, 0}), (Stays{0, 1, 0, 1, 0, 0}));
  // A score must be above the limit; a NaN and minus infinity are none.
  EXPECT_EQ(stays_of(starts, scores, {9, 2, 0.5, 0}), (Stays{0, 1, 1, 1, 0, 0}));
  const float nan = std::numeric_limits<float>::quiet_NaN(), none = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(stays_of(starts, {nan, none, 1, 1, 1, 1}, {9, 2, -kInfinity, 0}), (Stays{0, 0, 1, 1, 1, 1}));
}

TEST(KeepBoxes, ABoxGoesForOnesOfItsGroupAlone) {
  const std::vector<float> starts = {0, 1, 2, 0, 1, 2}, scores = {3, 2, 1, 3, 2, 1};
  EXPECT_EQ(stays_of(starts, scores, {9, 0.5, 0, 0}, {4, -1, 4, 0, 0, 1}), (Stays{1, 1, 0, 1, 0, 1}));
  // Of equal scores the first stays.
  EXPECT_EQ(stays_of(starts, {1, 1, 1, 1, 2, 1}, {9, 0.5, 0, 0}), (Stays{1, 0, 0, 0, 1, 0}));
}

TEST(KeepBoxes, OtherOperandsAreAStrangersPlan) {
  const std::vector<float> six(6, 1);
  EXPECT_THROW(stays_of(six, six, {9, 0.5, 0}), Error);
  EXPECT_THROW(stays_of(six, six, {9, 0.5, 0, 0}, {1, 2, 3}), Error);
}

}  // namespace
}  // namespace tensormill::host_ops
