#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <span>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/dense_steps.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

/// y1, x1, y2, x2 with y1 <= y2 and x1 <= x2.
using Sides = std::array<float, 4>;

Sides box_at(const float* boxes, int32_t index) {
  const float* box = boxes + size_t{4} * static_cast<size_t>(index);
  return {std::min(box[0], box[2]), std::min(box[1], box[3]), std::max(box[0], box[2]),
          std::max(box[1], box[3])};
}

float area_of(const Sides& box) { return (box[2] - box[0]) * (box[3] - box[1]); }

/// Their intersection's part of their union; 0 where one of them has no area.
float shared_part(const Sides& a, const Sides& b) {
  const float one = area_of(a), other = area_of(b);
  if (!(one > 0) || !(other > 0)) return 0;
  const float height = std::max(std::min(a[2], b[2]) - std::max(a[0], b[0]), 0.0F);
  const float width = std::max(std::min(a[3], b[3]) - std::max(a[1], b[1]), 0.0F);
  const float shared = height * width, whole = one + other - shared;
  return whole == 0 ? 0 : shared / whole;
}

struct SoftLimits {
  size_t most = 0;  ///< boxes of a class
  float overlap = 0;
  float score = 0;
  float sigma = 0;
};

struct RankedBox {
  float score = 0;
  int32_t box = 0;
  size_t compared = 0;  ///< with as many of those that were kept
  /// The best one is the largest: of equal scores the one that stands first.
  bool operator<(const RankedBox& other) const {
    return score < other.score || (score == other.score && box > other.box);
  }
};

class SoftSelection {
public:
  SoftSelection(const float* boxes, std::span<const float> scores, const SoftLimits& limits)
      : boxes_(boxes), limits_(limits), factor_(limits.sigma > 0 ? -0.5F / limits.sigma : 0.0F) {
    std::vector<RankedBox> candidates;
    // A NaN is no score, and would have no place in the order.
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] > limits.score) candidates.push_back({scores[i], static_cast<int32_t>(i)});
    }
    queue_ = std::priority_queue<RankedBox>(std::less<RankedBox>(), std::move(candidates));
  }

  void run() {
    while (kept.size() < limits_.most && !queue_.empty()) {
      RankedBox next = queue_.top();
      queue_.pop();
      const float before = next.score;
      if (is_dropped(next)) continue;
      // What has lost some of its score waits for its turn again; nobody is compared with it twice.
      if (next.score == before) {
        kept.push_back(next.box);
        kept_scores.push_back(next.score);
      } else if (next.score > limits_.score) {
        next.compared = kept.size();
        queue_.push(next);
      }
    }
  }

  std::vector<int32_t> kept;
  std::vector<float> kept_scores;

private:
  bool is_dropped(RankedBox& next) const {
    const Sides own = box_at(boxes_, next.box);
    for (size_t j = kept.size(); j-- > next.compared;) {
      const float shared = shared_part(own, box_at(boxes_, kept[j]));
      if (shared >= limits_.overlap) return true;
      if (limits_.sigma > 0) next.score *= std::exp(factor_ * shared * shared);
      if (!(next.score > limits_.score)) return false;
    }
    return false;
  }

  const float* boxes_;
  const SoftLimits limits_;
  const float factor_;
  std::priority_queue<RankedBox> queue_;
};

struct ScoredBox {
  float score = 0;
  size_t box = 0;
};

/// Which boxes of a row stay, as bytes that are 1. Without groups all belong together.
class RowSelection {
public:
  RowSelection(const float* boxes, const int64_t* groups, const SoftLimits& limits)
      : boxes_(boxes), groups_(groups), limits_(limits) {}

  void run(std::span<const float> scores, uint8_t* stays) const {
    std::vector<ScoredBox> candidates;
    // A NaN is no score, and would have no place in the order.
    for (size_t i = 0; i < scores.size(); ++i) {
      stays[i] = 0;
      if (scores[i] > limits_.score) candidates.push_back({scores[i], i});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const ScoredBox& a, const ScoredBox& b) { return a.score > b.score; });
    std::vector<size_t> kept;
    for (size_t i = 0; i < candidates.size() && kept.size() < limits_.most; ++i) {
      const size_t box = candidates[i].box;
      if (is_covered(box, kept)) continue;
      kept.push_back(box);
      stays[box] = 1;
    }
  }

private:
  bool is_covered(size_t box, const std::vector<size_t>& kept) const {
    const Sides own = box_at(boxes_, static_cast<int32_t>(box));
    return std::any_of(kept.begin(), kept.end(), [&](size_t other) {
      return (groups_ == nullptr || groups_[box] == groups_[other]) &&
             shared_part(own, box_at(boxes_, static_cast<int32_t>(other))) >= limits_.overlap;
    });
  }

  const float* boxes_;
  const int64_t* groups_;
  const SoftLimits limits_;
};

SoftLimits limits_of(const TensorView& view, size_t room) {
  if (view.dtype != DType::kFloat64 || num_elements(view.shape) != 4)
    throw Error(ErrorCode::kInvalidPackage, "a host step suppresses boxes by other limits");
  const auto* numbers = static_cast<const double*>(view.data);
  // A number that is none is no room.
  const double most = numbers[0] > 0 ? std::min(numbers[0], static_cast<double>(room)) : 0;
  return {static_cast<size_t>(most), static_cast<float>(numbers[1]), static_cast<float>(numbers[2]),
          static_cast<float>(numbers[3])};
}

}  // namespace

void suppress_boxes(const HostCall& call) {
  expect(call, 3, 3);
  const Attributes attributes(call);
  const TensorView &boxes = call.inputs[0], &scores = call.inputs[1];
  constexpr int64_t kMostBoxes = int64_t{1} << 30;
  const int64_t room = attributes.integer("most");
  const bool fits = boxes.dtype == DType::kFloat32 && scores.dtype == DType::kFloat32 &&
                    boxes.shape.size() == 2 && scores.shape.size() == 2 && boxes.shape[1] == 4 &&
                    boxes.shape[0] == scores.shape[1] && boxes.shape[0] < kMostBoxes && room >= 0 &&
                    room < kMostBoxes;
  if (!fits) throw Error(ErrorCode::kInvalidPackage, "a host step suppresses what are no boxes");
  const auto most = static_cast<size_t>(room), classes = static_cast<size_t>(scores.shape[0]),
             count = static_cast<size_t>(scores.shape[1]);
  const SoftLimits limits = limits_of(call.inputs[2], most);
  auto* places = static_cast<int32_t*>(storage(call, 0, classes * most, sizeof(int32_t)));
  auto* kept_scores = static_cast<float*>(storage(call, 1, classes * most, sizeof(float)));
  auto* counts = static_cast<int32_t*>(storage(call, 2, classes, sizeof(int32_t)));
  std::fill_n(places, classes * most, 0);
  std::fill_n(kept_scores, classes * most, 0.0F);
  for (size_t label = 0; label < classes; ++label) {
    const std::span own(static_cast<const float*>(scores.data) + label * count, count);
    SoftSelection selection(static_cast<const float*>(boxes.data), own, limits);
    selection.run();
    std::copy(selection.kept.begin(), selection.kept.end(), places + label * most);
    std::copy(selection.kept_scores.begin(), selection.kept_scores.end(), kept_scores + label * most);
    counts[label] = static_cast<int32_t>(selection.kept.size());
  }
}

void keep_boxes(const HostCall& call) {
  expect(call, call.inputs.size() == 4 ? 4 : 3, 1);
  const TensorView &boxes = call.inputs[0], &scores = call.inputs[1];
  constexpr int64_t kMostBoxes = int64_t{1} << 30;
  bool fits = boxes.dtype == DType::kFloat32 && scores.dtype == DType::kFloat32 && scores.shape.size() == 2 &&
              boxes.shape == Shape{scores.shape[0], scores.shape[1], 4} && scores.shape[1] < kMostBoxes;
  const int64_t* groups = nullptr;
  if (fits && call.inputs.size() == 4) {
    fits = call.inputs[3].dtype == DType::kInt64 && call.inputs[3].shape == scores.shape;
    groups = static_cast<const int64_t*>(call.inputs[3].data);
  }
  if (!fits) throw Error(ErrorCode::kInvalidPackage, "a host step keeps some of what are no boxes");
  const auto rows = static_cast<size_t>(scores.shape[0]), count = static_cast<size_t>(scores.shape[1]);
  const SoftLimits limits = limits_of(call.inputs[2], count);
  auto* stays = static_cast<uint8_t*>(storage(call, 0, rows * count, sizeof(uint8_t)));
  for (size_t row = 0; row < rows; ++row) {
    const RowSelection selection(static_cast<const float*>(boxes.data) + row * count * 4,
                                 groups == nullptr ? nullptr : groups + row * count, limits);
    selection.run(std::span(static_cast<const float*>(scores.data) + row * count, count),
                  stays + row * count);
  }
}

}  // namespace tensormill::host_ops
