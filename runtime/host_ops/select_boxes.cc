#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
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

struct Candidate {
  float score = 0;
  int64_t box = 0;
};

bool is_better(const Candidate& a, const Candidate& b) {
  return a.score > b.score || (a.score == b.score && a.box < b.box);
}

/// Those that have a score that counts, in `room`, which has place for all.
std::span<Candidate> find_candidates(std::span<const float> scores, const BoxSelection& selection,
                                     std::vector<Candidate>& room) {
  size_t count = 0;
  const double least = selection.score_threshold.value_or(0);
  const bool has_least = selection.score_threshold.has_value();
  // Written first and counted then: which ones count cannot be foreseen. A NaN is no score, and would have no
  // place in the order.
  for (size_t i = 0; i < scores.size(); ++i) {
    room[count] = {scores[i], static_cast<int64_t>(i)};
    count += (has_least ? static_cast<double>(scores[i]) > least : scores[i] == scores[i]) ? 1 : 0;
  }
  return std::span(room).first(count);
}

/// The boxes of a class that stay. What overlaps a box shares an interval with it: boxes are looked up by the
/// intervals of one axis that they reach into, of which there are as many as boxes are long along it.
class KeptBoxes {
public:
  KeptBoxes(double threshold, std::span<const Candidate> all, const float* boxes, bool center_form)
      : threshold_(threshold), all_(all), boxes_(boxes), center_form_(center_form) {}

  size_t size() const { return size_; }

  bool have_overlap(const Box& box) const {
    if (overlaps_one(box, listed_)) return true;
    if (intervals_.empty()) return false;
    const std::pair<size_t, size_t> reach =
        reach_of(box).value_or(std::pair(size_t{0}, intervals_.size() - 1));
    for (size_t at = reach.first; at <= reach.second; ++at) {
      if (overlaps_one(box, intervals_[at])) return true;
    }
    return false;
  }

  void add(const Box& box) {
    ++size_;
    if (intervals_.empty() && size_ == kFewBoxes) return divide(box);
    put(box);
  }

private:
  /// Of fewer all are looked at.
  static constexpr size_t kFewBoxes = 64;
  static constexpr float kMostIntervals = 4096;

  bool overlaps_one(const Box& box, const std::vector<Box>& others) const {
    return std::any_of(others.begin(), others.end(),
                       [&](const Box& other) { return overlaps(box, other, threshold_); });
  }

  void put(const Box& box) {
    const auto reach = intervals_.empty() ? std::nullopt : reach_of(box);
    if (!reach) return listed_.push_back(box);
    for (size_t at = reach->first; at <= reach->second; ++at) intervals_[at].push_back(box);
  }

  void divide(const Box& last) {
    std::array<float, 2> low{}, high{}, length{};
    size_t count = 0;
    for (const Candidate& each : all_) {
      const Box box = corners(boxes_ + 4 * each.box, center_form_);
      if (!is_finite(box)) continue;
      for (size_t d = 0; d < 2; ++d) {
        low[d] = count == 0 ? box[d] : std::min(low[d], box[d]);
        high[d] = count == 0 ? box[d + 2] : std::max(high[d], box[d + 2]);
        length[d] += box[d + 2] - box[d];
      }
      ++count;
    }
    const auto count_along = [&](size_t d) {
      const float mean = length[d] / static_cast<float>(std::max<size_t>(count, 1));
      const float wanted = (high[d] - low[d]) / mean;
      return wanted >= 1 ? std::min(wanted, kMostIntervals) : 1.0F;
    };
    axis_ = count_along(1) > count_along(0) ? 1 : 0;
    low_ = low[axis_];
    const float wanted = count_along(axis_);
    scale_ = wanted / (high[axis_] - low_);
    intervals_.resize(static_cast<size_t>(wanted));
    for (const Box& box : std::exchange(listed_, {})) put(box);
    put(last);
  }

  static bool is_finite(const Box& box) {
    return std::all_of(box.begin(), box.end(), [](float value) { return std::isfinite(value); });
  }

  /// The intervals from the first to the last; nothing for a box that has no numbers as corners, or where the
  /// boxes reach too far for any.
  std::optional<std::pair<size_t, size_t>> reach_of(const Box& box) const {
    if (!is_finite(box) || !std::isfinite(scale_) || !(scale_ > 0)) return std::nullopt;
    const float last = static_cast<float>(intervals_.size() - 1);
    // Never falls where the value rises: what two boxes share is in an interval of both.
    const auto place = [&](float value) {
      return static_cast<size_t>(std::clamp((value - low_) * scale_, 0.0F, last));
    };
    return std::pair(place(box[axis_]), place(box[axis_ + 2]));
  }

  const double threshold_;
  const std::span<const Candidate> all_;
  const float* const boxes_;
  const bool center_form_;
  size_t size_ = 0, axis_ = 0;
  float low_ = 0, scale_ = 0;
  std::vector<std::vector<Box>> intervals_;  ///< by interval; none while there are few boxes
  std::vector<Box> listed_;                  ///< those that are in no interval
};

/// A run's candidates are sorted as far as they are looked at: first so many, then twice as many more.
constexpr std::ptrdiff_t kFirstSorted = 128;

/// Appends [batch, label, box] of the boxes [n,4] of one class that stay, best first.
void select_class(const float* boxes, std::span<Candidate> candidates, const BoxSelection& selection,
                  int64_t batch, int64_t label, std::vector<int64_t>& rows) {
  KeptBoxes kept(selection.iou_threshold, candidates, boxes, selection.center_form);
  const auto is_full = [&] { return static_cast<int64_t>(kept.size()) >= selection.max_per_class; };
  auto sorted = candidates.begin();
  std::ptrdiff_t step = kFirstSorted;
  for (auto next = candidates.begin(); next != candidates.end() && !is_full(); ++next) {
    if (next == sorted) {
      sorted += std::min(step, candidates.end() - sorted);
      step *= 2;
      std::nth_element(next, sorted - 1, candidates.end(), is_better);
      std::sort(next, sorted, is_better);
    }
    const Box box = corners(boxes + 4 * next->box, selection.center_form);
    if (kept.have_overlap(box)) continue;
    kept.add(box);
    rows.insert(rows.end(), {batch, label, next->box});
  }
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
  std::vector<Candidate> room(count);
  for (int64_t batch = 0; batch < b[0]; ++batch) {
    const float* own = boxes.values<float>().data() + static_cast<size_t>(batch) * count * 4;
    for (int64_t label = 0; label < s[1]; ++label) {
      const size_t at = static_cast<size_t>(batch * s[1] + label) * count;
      const std::span<Candidate> candidates =
          find_candidates(scores.values<float>().subspan(at, count), selection, room);
      select_class(own, candidates, selection, batch, label, rows);
    }
  }
  return Tensor::from<int64_t>({static_cast<int64_t>(rows.size()) / 3, 3}, rows);
}

}  // namespace tensormill::host_ops
