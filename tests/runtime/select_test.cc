#include "runtime/host_ops/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "runtime/base/error.h"

namespace tensormill::host_ops {
namespace {

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from<float>(std::move(shape), values);
}
std::vector<int64_t> integers_in(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.element_as_int(i));
  return values;
}
using Ints = std::vector<int64_t>;

/// Three boxes: the first two overlap by 0.8 of their union, the third is elsewhere; corners of it swapped.
Tensor three_boxes() { return floats({1, 3, 4}, {0, 0, 9, 1, 1, 0, 10, 1, 30, 5, 20, 4}); }

TEST(SelectBoxes, DropsWhatOverlapsABetterBox) {
  const Tensor scores = floats({1, 2, 3}, {0.5F, 0.9F, 0.7F, 0.1F, 0.1F, 0.3F});
  const BoxSelection selection{.max_per_class = 3, .iou_threshold = 0.5, .score_threshold = {}};
  const Tensor kept = select_boxes(three_boxes(), scores, selection);
  EXPECT_EQ(kept.shape(), (Shape{4, 3}));
  // Of equal scores the lower index is the better box.
  EXPECT_EQ(integers_in(kept), (Ints{0, 0, 1, 0, 0, 2, 0, 1, 2, 0, 1, 0}));
  EXPECT_EQ(
      select_boxes(three_boxes(), scores, {.max_per_class = 3, .iou_threshold = 0.9, .score_threshold = 0.4})
          .shape(),
      (Shape{3, 3}));
}

TEST(SelectBoxes, KeepsAtMostSoManyAClass) {
  const Tensor scores = floats({1, 2, 3}, {0.5F, 0.9F, 0.7F, 0.1F, 0.1F, 0.3F});
  EXPECT_EQ(integers_in(select_boxes(three_boxes(), scores,
                                     {.max_per_class = 1, .iou_threshold = 1, .score_threshold = {}})),
            (Ints{0, 0, 1, 0, 1, 2}));
  EXPECT_EQ(select_boxes(three_boxes(), scores, {}).shape(), (Shape{0, 3}));
}

TEST(SelectBoxes, HostileNumbersAndShapes) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor boxes = floats({1, 3, 4}, {nan, nan, nan, nan, -inf, -inf, inf, inf, 0, 0, 1e38F, 1e38F});
  const Tensor scores = floats({1, 1, 3}, {inf, 1, nan});
  EXPECT_EQ(integers_in(select_boxes(
                boxes, scores, {.max_per_class = INT64_MAX, .iou_threshold = 0.5, .score_threshold = {}})),
            (Ints{0, 0, 0, 0, 0, 1}));
  EXPECT_THROW(select_boxes(floats({1, 4, 3}, std::vector<float>(12, 0)), scores, {}), Error);
  EXPECT_THROW(select_boxes(boxes, floats({1, 1, 2}, {1, 1}), {}), Error);
}

/// As written in the standard: each box beside all better ones that stay.
std::vector<int64_t> kept_one_by_one(const std::vector<float>& boxes, size_t count, float threshold) {
  std::vector<int64_t> kept;
  const auto overlap = [&](size_t a, size_t b) {
    const float *x = boxes.data() + 4 * a, *y = boxes.data() + 4 * b;
    const auto side = [&](size_t d) { return std::min(x[d + 2], y[d + 2]) - std::max(x[d], y[d]); };
    const auto area = [](const float* box) { return (box[2] - box[0]) * (box[3] - box[1]); };
    if (!(side(0) > 0) || !(side(1) > 0)) return false;
    const float shared = side(0) * side(1);
    return shared / (area(x) + area(y) - shared) > threshold;
  };
  for (size_t i = 0; i < count; ++i) {
    const auto drops = [&](int64_t other) { return overlap(i, static_cast<size_t>(other)); };
    if (std::none_of(kept.begin(), kept.end(), drops)) kept.push_back(static_cast<int64_t>(i));
  }
  return kept;
}

/// Many boxes: small and large ones, in groups far apart as of classes that do not overlap, all at one place,
/// and some without numbers as corners, which overlap nothing.
TEST(SelectBoxes, ManyBoxesAreThoseThatStayOneByOne) {
  std::mt19937 random(7);
  const auto uniform = [&](float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random);
  };
  for (const float apart : {0.0F, 500.0F, 1e6F}) {
    for (const float longest : {0.0F, 2.0F, 30.0F, 900.0F}) {
      const size_t count = 700;
      std::vector<float> boxes, scores;
      for (size_t i = 0; i < count; ++i) {
        const float group = apart * std::floor(uniform(0, 9));
        const float y = group + uniform(0, 100), x = group + uniform(0, 100);
        boxes.insert(boxes.end(), {y, x, y + uniform(0, longest), x + uniform(0, longest)});
        if (i % 90 == 89) boxes.end()[-1] = std::numeric_limits<float>::infinity();
        if (i % 100 == 99) boxes.end()[-3] = std::numeric_limits<float>::quiet_NaN();
        scores.push_back(static_cast<float>(count - i));
      }
      const Tensor kept = select_boxes(floats({1, 700, 4}, boxes), floats({1, 1, 700}, scores),
                                       {.max_per_class = 700, .iou_threshold = 0.25, .score_threshold = {}});
      std::vector<int64_t> places;
      for (int64_t i = 0; i < kept.shape()[0]; ++i) places.push_back(kept.element_as_int(3 * i + 2));
      EXPECT_EQ(places, kept_one_by_one(boxes, count, 0.25F)) << apart << " " << longest;
    }
  }
}

TEST(DistinctTest, OfAllElements) {
  const Tensor x = floats({2, 3}, {2, 1, 1, 3, 4, 3});
  const Distinct sorted = distinct(x, {}, true);
  EXPECT_EQ(integers_in(sorted.values), (Ints{1, 2, 3, 4}));
  EXPECT_EQ(integers_in(sorted.first), (Ints{1, 0, 3, 4}));
  EXPECT_EQ(integers_in(sorted.inverse), (Ints{1, 0, 0, 2, 3, 2}));
  EXPECT_EQ(integers_in(sorted.counts), (Ints{2, 1, 2, 1}));
  const Distinct in_order = distinct(x, {}, false);
  EXPECT_EQ(integers_in(in_order.values), (Ints{2, 1, 3, 4}));
  EXPECT_EQ(integers_in(in_order.inverse), (Ints{0, 1, 1, 2, 3, 2}));
}

TEST(DistinctTest, OfSlices) {
  const Tensor x = Tensor::from<int64_t>({2, 3}, Ints{5, 4, 5, 1, 1, 1});
  const Distinct columns = distinct(x, 1, true);
  EXPECT_EQ(columns.values.shape(), (Shape{2, 2}));
  EXPECT_EQ(integers_in(columns.values), (Ints{4, 5, 1, 1}));
  EXPECT_EQ(integers_in(columns.counts), (Ints{1, 2}));
  EXPECT_EQ(distinct(Tensor::zeros(DType::kInt64, {3, 0}), 0, true).values.shape(), (Shape{1, 0}));
  EXPECT_EQ(distinct(Tensor::zeros(DType::kInt64, {0}), {}, true).values.shape(), (Shape{0}));
}

TEST(DistinctTest, NansAreOneValueAndUnsignedIntegersAreUnsigned) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Distinct floats_with_nans = distinct(floats({4}, {nan, 1, nan, -1}), {}, true);
  EXPECT_EQ(integers_in(floats_with_nans.counts), (Ints{1, 1, 2}));
  const Distinct large =
      distinct(Tensor::from<uint64_t>({2}, std::vector<uint64_t>{~uint64_t{0}, 1}), {}, true);
  EXPECT_EQ(integers_in(large.first), (Ints{1, 0}));
}

}  // namespace
}  // namespace tensormill::host_ops
