#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/sequence_steps.h"

namespace tensormill::host_ops {

namespace {

constexpr size_t kNoBeam = SIZE_MAX;

template <typename T>
constexpr T kImpossible = -std::numeric_limits<T>::infinity();

/// The logarithm of a sum, by those of its terms.
template <typename T>
T sum_of_logs(T a, T b) {
  if (a == kImpossible<T> && b == kImpossible<T>) return kImpossible<T>;
  return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
}

/// A sequence of labels: one more than its parent has. How likely it is that what was said so far is this
/// sequence, with none as the last label, and with its own.
template <typename T>
struct Beam {
  struct Logs {
    T total = kImpossible<T>, none = kImpossible<T>, label = kImpossible<T>;
  };
  size_t parent = kNoBeam;
  size_t label = SIZE_MAX;
  std::map<size_t, size_t> longer = {};
  Logs before = {}, now = {};

  bool is_kept() const { return now.total != kImpossible<T>; }
};

/// The best of those that were put in, as many as `most`. Which of equal ones go, and in which order they
/// are, is that of TensorFlow's: a list until there are more, of which the worst one is first as soon as it
/// was asked for, and a heap from then on.
template <typename T>
class BestBeams {
public:
  BestBeams(const std::vector<Beam<T>>& beams, size_t most) : beams_(beams), most_(most) {}

  size_t size() const { return places_.size(); }
  const std::vector<size_t>& unsorted() const { return places_; }

  void put(size_t place) {
    if (is_heap_ && !is_better(place, places_.front())) return;
    places_.push_back(place);
    const auto better = [this](size_t a, size_t b) { return is_better(a, b); };
    if (is_heap_) {
      std::push_heap(places_.begin(), places_.end(), better);
    } else {
      if (has_worst_ && !is_better(places_.back(), places_.front()))
        std::swap(places_.front(), places_.back());
      if (places_.size() <= most_) return;
      std::make_heap(places_.begin(), places_.end(), better);
      is_heap_ = true;
    }
    std::pop_heap(places_.begin(), places_.end(), better);
    places_.pop_back();
  }

  size_t worst() {
    if (!is_heap_ && !has_worst_) {
      size_t least = 0;
      for (size_t i = 1; i < places_.size(); ++i)
        if (is_better(places_[least], places_[i])) least = i;
      std::swap(places_[0], places_[least]);
      has_worst_ = true;
    }
    return places_.front();
  }

  /// The best first; none is left.
  std::vector<size_t> taken() {
    std::vector<size_t> all;
    all.swap(places_);
    const auto better = [this](size_t a, size_t b) { return is_better(a, b); };
    if (is_heap_) {
      std::sort_heap(all.begin(), all.end(), better);
    } else {
      std::sort(all.begin(), all.end(), better);
    }
    is_heap_ = has_worst_ = false;
    return all;
  }

private:
  /// What is no number is worse than all else, so that there is an order.
  T total_of(size_t place) const {
    const T total = beams_[place].now.total;
    return std::isnan(total) ? kImpossible<T> : total;
  }
  bool is_better(size_t a, size_t b) const { return total_of(a) > total_of(b); }

  const std::vector<Beam<T>>& beams_;
  const size_t most_;
  std::vector<size_t> places_;
  bool is_heap_ = false, has_worst_ = false;
};

template <typename T>
class Search {
public:
  Search(size_t classes, size_t width) : none_(classes - 1), width_(width), kept_(beams_, width) {
    beams_.emplace_back();
    beams_[0].now.total = beams_[0].now.none = 0;
    kept_.put(0);
  }

  /// The scores of the next step.
  void step(const T* scores) {
    const T whole = sum_of_scores(scores);
    const std::vector<size_t> sequences = kept_.taken();
    for (const size_t place : sequences) beams_[place].before = beams_[place].now;
    for (const size_t place : sequences) {
      Beam<T>& own = beams_[place];
      if (own.parent != kNoBeam) {
        const Beam<T>& parent = beams_[own.parent];
        if (parent.is_kept()) own.now.label = sum_of_logs(own.now.label, onward(parent, own.label));
        own.now.label += scores[own.label] - whole;
      }
      own.now.none = own.before.total + scores[none_] - whole;
      own.now.total = sum_of_logs(own.now.none, own.now.label);
      kept_.put(place);
    }
    for (const size_t place : sequences)
      if (may_enter(beams_[place].before.total)) grow(place, scores, whole);
  }

  /// The most likely sequences, the best first.
  std::vector<size_t> best(size_t count) const {
    if (count > kept_.size())
      throw Error(ErrorCode::kTensorData, std::to_string(count) + " sequences of labels, of which " +
                                              std::to_string(kept_.size()) + " are possible");
    BestBeams<T> chosen(beams_, count);
    for (const size_t place : kept_.unsorted()) chosen.put(place);
    return chosen.taken();
  }
  T total(size_t place) const { return beams_[place].now.total; }
  std::vector<int64_t> labels(size_t place, bool merges) const {
    std::vector<int64_t> made;
    size_t behind = SIZE_MAX;
    for (; beams_[place].parent != kNoBeam; place = beams_[place].parent) {
      const size_t label = beams_[place].label;
      if (!merges || label != behind) made.push_back(static_cast<int64_t>(label));
      behind = label;
    }
    std::reverse(made.begin(), made.end());
    return made;
  }

private:
  /// The logarithm of the sum of what the scores are logarithms of.
  T sum_of_scores(const T* scores) const {
    const T most = *std::max_element(scores, scores + none_ + 1);
    T sum = 0;
    for (size_t label = 0; label <= none_; ++label) sum += std::exp(scores[label] - most);
    return most + std::log(sum);
  }

  /// How likely the sequence of `from` was, if another label behind it is to be heard as one more.
  static T onward(const Beam<T>& from, size_t label) {
    return from.label == label ? from.before.none : from.before.total;
  }

  bool may_enter(T total) {
    return total > kImpossible<T> && (kept_.size() < width_ || total > beams_[kept_.worst()].now.total);
  }

  /// Those that are one label longer and not kept yet.
  void grow(size_t place, const T* scores, T whole) {
    for (size_t label = 0; label < none_; ++label) {
      const auto found = beams_[place].longer.find(label);
      const bool is_there = found != beams_[place].longer.end();
      if (is_there && beams_[found->second].is_kept()) continue;
      const T total = scores[label] - whole + onward(beams_[place], label);
      if (!may_enter(total)) {
        if (is_there) beams_[found->second].before = beams_[found->second].now = {};
        continue;
      }
      const size_t longer = is_there ? found->second : beams_.size();
      if (!is_there) {
        beams_[place].longer.emplace(label, longer);
        beams_.push_back({place, label});
      }
      beams_[longer].now = {total, kImpossible<T>, total};
      if (kept_.size() == width_) beams_[kept_.worst()].now = {};
      kept_.put(longer);
    }
  }

  const size_t none_, width_;
  std::vector<Beam<T>> beams_;
  BestBeams<T> kept_;
};

struct Lengths {
  size_t steps, batch, classes, paths;
};

template <typename T>
void search_rows(const HostCall& call, const Lengths& extents, const std::vector<int64_t>& steps) {
  const Attributes attributes(call);
  const bool merges = attributes.flag("merges");
  const auto width = static_cast<size_t>(std::max<int64_t>(attributes.integer("width"), 1));
  const auto& [most, batch, classes, paths] = extents;
  auto* labels = static_cast<int64_t*>(storage(call, 0, paths * batch * most, sizeof(int64_t)));
  std::fill_n(labels, paths * batch * most, 0);
  auto* counts = static_cast<int64_t*>(storage(call, 1, paths * batch, sizeof(int64_t)));
  auto* totals = static_cast<T*>(storage(call, 2, batch * paths, sizeof(T)));
  const Tensor scores = copied(call.inputs[0]);
  const T* all = scores.values<T>().data();
  for (size_t row = 0; row < batch; ++row) {
    Search<T> search(classes, width);
    for (size_t step = 0; static_cast<int64_t>(step) < steps[row]; ++step)
      search.step(all + (step * batch + row) * classes);
    const std::vector<size_t> best = search.best(paths);
    for (size_t path = 0; path < paths; ++path) {
      const std::vector<int64_t> made = search.labels(best[path], merges);
      std::copy(made.begin(), made.end(), labels + (path * batch + row) * most);
      counts[path * batch + row] = static_cast<int64_t>(made.size());
      totals[row * paths + path] = search.total(best[path]);
    }
  }
}

}  // namespace

void likely_labels(const HostCall& call) {
  expect(call, 2, 3);
  const TensorView &scores = call.inputs[0], &counts = call.inputs[1];
  const bool is_double = scores.dtype == DType::kFloat64;
  const bool fits = (is_double || scores.dtype == DType::kFloat32) && scores.shape.size() == 3 &&
                    scores.shape[2] > 0 && counts.dtype == DType::kInt64 &&
                    counts.shape == Shape{scores.shape[1]};
  if (!fits) throw Error(ErrorCode::kInvalidPackage, "a host step searches in what are no scores");
  const auto batch = static_cast<size_t>(scores.shape[1]);
  const Tensor given = copied(counts);
  std::vector<int64_t> steps(given.values<int64_t>().begin(), given.values<int64_t>().end());
  for (const int64_t count : steps)
    if (count > scores.shape[0])
      throw Error(ErrorCode::kTensorData, "a sequence of " + std::to_string(count) + " steps in scores of " +
                                              std::to_string(scores.shape[0]));
  const size_t paths = batch == 0 ? 0 : call.output_bytes[1] / sizeof(int64_t) / batch;
  const Lengths extents{static_cast<size_t>(scores.shape[0]), batch, static_cast<size_t>(scores.shape[2]),
                        paths};
  if (is_double) return search_rows<double>(call, extents, steps);
  search_rows<float>(call, extents, steps);
}

}  // namespace tensormill::host_ops
