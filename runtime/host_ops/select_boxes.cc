#include <algorithm>
#include <array>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/select.h"

namespace tensormill::host_ops {

namespace {

/// y1, x1, y2, x2 with y1 <= y2 and x1 <= x2 (or the other way round for x and y: overlaps are the same).
using Box = std::array<float, 4>;

Box corners(const float* box, bool center_form) {
  if (center_form) {
    const float half_width = box[2] / 2, half_height = box[3] / 2;
    return {box[1] - half_height, box[0] - half_width, box[1] + half_height, box[0] + half_width};
  }
  return {std::min(box[0], box[2]), std::min(box[1], box[3]), std::max(box[0], box[2]),
          std::max(box[1], box[3])};
}

float area(const Box& box) { return (box[2] - box[0]) * (box[3] - box[1]); }

bool overlaps(const Box& a, const Box& b, double threshold) {
  const float height = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const float width = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  if (!(height > 0) || !(width > 0)) return false;
  const float shared = height * width;
  const float whole = area(a) + area(b) - shared;
  return area(a) > 0 && area(b) > 0 && whole > 0 && static_cast<double>(shared / whole) > threshold;
}

/// Indices of the boxes of one class that stay, best first.
std::vector<int64_t> select_class(const std::vector<Box>& boxes, std::span<const float> scores,
                                  const BoxSelection& selection) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < boxes.size(); ++i) {
    // A NaN is no score, and would have no place in the order.
    const bool counts =
        scores[i] == scores[i] &&
        (!selection.score_threshold || static_cast<double>(scores[i]) > *selection.score_threshold);
    if (counts) order.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  std::vector<int64_t> kept;
  for (const int64_t candidate : order) {
    if (static_cast<int64_t>(kept.size()) >= selection.max_per_class) break;
    const Box& box = boxes[static_cast<size_t>(candidate)];
    const bool dropped = std::any_of(kept.begin(), kept.end(), [&](int64_t better) {
      return overlaps(box, boxes[static_cast<size_t>(better)], selection.iou_threshold);
    });
    if (!dropped) kept.push_back(candidate);
  }
  return kept;
}

}  // namespace

Tensor select_boxes(const Tensor& boxes, const Tensor& scores, const BoxSelection& selection) {
  const Shape &b = boxes.shape(), &s = scores.shape();
  const bool fits = b.size() == 3 && s.size() == 3 && b[2] == 4 && b[0] == s[0] && b[1] == s[2];
  if (!fits || boxes.dtype() != DType::kFloat32 || scores.dtype() != DType::kFloat32) {
    throw Error(ErrorCode::kInvalidTensor, "boxes are " + std::string(dtype_name(boxes.dtype())) +
                                               to_string(b) + ", scores " +
                                               std::string(dtype_name(scores.dtype())) + to_string(s) +
                                               "; expected f32 [batch,n,4] and [batch,classes,n]");
  }
  const size_t count = static_cast<size_t>(b[1]);
  std::vector<int64_t> rows;
  for (int64_t batch = 0; batch < b[0]; ++batch) {
    std::vector<Box> own;
    for (size_t i = 0; i < count; ++i) {
      const float* box = boxes.values<float>().data() + (static_cast<size_t>(batch) * count + i) * 4;
      own.push_back(corners(box, selection.center_form));
    }
    for (int64_t label = 0; label < s[1]; ++label) {
      const size_t at = static_cast<size_t>(batch * s[1] + label) * count;
      for (const int64_t box : select_class(own, scores.values<float>().subspan(at, count), selection))
        rows.insert(rows.end(), {batch, label, box});
    }
  }
  return Tensor::from<int64_t>({static_cast<int64_t>(rows.size()) / 3, 3}, rows);
}

}  // namespace tensormill::host_ops
