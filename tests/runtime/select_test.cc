#include "runtime/host_ops/select.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
