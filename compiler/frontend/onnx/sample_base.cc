#include "compiler/frontend/onnx/sample_base.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace tensormill::frontend::onnx {

namespace {

using Dims = std::vector<int64_t>;

class BaseFinder {
public:
  BaseFinder(const ImportAt& import, const StopAt& stop_at, const StopAt& meant_at,
             const std::vector<Dims>& asked)
      : import_(import), stop_at_(stop_at), meant_at_(meant_at), asked_(asked) {}

  /// Extents of 1 hide which axes broadcast, so the least is 2.
  bool run(const Dims& anchor) {
    return find_free_base(anchor, false) || (find_dependent(anchor) && find_free_base(anchor, false)) ||
           find_free_base(anchor, true);
  }

  SampleBase take() { return {std::move(base_), std::move(steps_), std::move(dependents_)}; }

private:
  static constexpr int64_t kRoom = 64;

  /// `apart`: the first dims are larger than the last ones, or those are.
  bool find_free_base(const Dims& anchor, bool apart) {
    // Some are multiples of 3 and 5. The last ones have room for windows whose elements are far apart.
    for (const int64_t extent : {2, 8, 32, 64, 224, 512, 1024, 96, 960, 16000, 1 << 17, 1 << 21}) {
      raised_.clear();
      base_ = anchor;
      for (int64_t& value : base_) value = value == 0 ? extent : std::max<int64_t>(value, 2);
      base_ = settled(base_);
      if (!takes(base_) && (!apart || !part_base())) continue;
      if (find_steps()) return true;
    }
    return false;
  }

  /// Makes the first dims larger than the last ones or those than the first ones, as few of them as will do:
  /// operands come one after the other, and the windows of one go over the other.
  bool part_base() {
    const Dims before = base_;
    const size_t count = base_.size();
    for (size_t cut = 1; cut < count; ++cut) {
      for (const bool first : {true, false}) {
        base_ = before;
        for (size_t d = first ? 0 : cut; d < (first ? cut : count); ++d) base_[d] += kRoom;
        base_ = settled(base_);
        if (!takes(base_)) continue;
        for (size_t d = 0; d < count; ++d) {
          Dims less = base_;
          less[d] = before[d];
          less = settled(less);
          if (less != base_ && takes(less)) base_ = less;
          if (base_[d] != before[d] && !is_dependent(d)) raised_.insert(d);
        }
        return true;
      }
    }
    base_ = before;
    return false;
  }

  bool find_steps() {
    steps_.clear();
    for (size_t d = 0; d < base_.size(); ++d) {
      steps_.push_back(is_dependent(d) ? 1 : find_step(d));
      if (steps_.back() != 0) continue;
      if (!make_room(d)) return false;
      return find_steps();
    }
    return true;
  }

  /// Makes another dim larger, so that there is a range of extents for this one: a window is no larger than
  /// what it goes over. Each is made so once.
  bool make_room(size_t dim) {
    for (size_t other = 0; other < base_.size(); ++other) {
      if (other == dim || is_dependent(other) || raised_.count(other) != 0) continue;
      const Dims before = base_;
      base_[other] += kRoom;
      base_ = settled(base_);
      if (find_step(dim) != 0 && takes(base_) && (!meant_at_ || meant_at_(base_).node == -1)) {
        raised_.insert(other);
        return true;
      }
      base_ = before;
    }
    return false;
  }

  /// Bases are looked at again where others were of no use.
  bool takes(const Dims& dims) const {
    const auto known = taken_.find(dims);
    return known != taken_.end() ? known->second
                                 : taken_.emplace(dims, import_(dims).has_value()).first->second;
  }

  Dims settled(Dims dims) const { return ir::with_dependents(std::move(dims), dependents_); }
  bool is_dependent(size_t dim) const {
    return std::any_of(dependents_.begin(), dependents_.end(),
                       [&](const ir::DependentDim& each) { return each.dim == dim; });
  }

  bool find_dependent(const Dims& anchor) {
    std::vector<Dims> taken, larger;
    std::copy_if(asked_.begin(), asked_.end(), std::back_inserter(taken),
                 [this](const Dims& dims) { return takes(dims); });
    // An extent of 1 may be one that stands for all of another operand.
    std::copy_if(taken.begin(), taken.end(), std::back_inserter(larger),
                 [](const Dims& dims) { return std::find(dims.begin(), dims.end(), 1) == dims.end(); });
    for (const std::vector<Dims>* shapes : {&taken, &larger}) {
      if (shapes == &larger && larger.size() == taken.size()) break;
      if (meant_at_) dependents_ = find_dependents(meant_at_, anchor, *shapes);
      if (dependents_.empty()) dependents_ = find_dependents(stop_at_, anchor, *shapes);
      if (!dependents_.empty()) break;
    }
    return !dependents_.empty();
  }

  /// What the dim must be a multiple of: the least at which the model can be imported.
  int64_t find_step(size_t dim) const {
    for (const int64_t step : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128}) {
      if (base_[dim] % step != 0) continue;
      bool all = true;
      for (const int64_t count : {1, 2, 3, 5}) {
        Dims dims = base_;
        dims[dim] += count * step;
        all = all && takes(settled(dims));
      }
      if (all) return step;
    }
    return 0;
  }

  const ImportAt& import_;
  const StopAt& stop_at_;
  const StopAt& meant_at_;
  const std::vector<Dims>& asked_;
  mutable std::map<Dims, bool> taken_;  ///< what was tried
  std::vector<ir::DependentDim> dependents_;
  Dims base_, steps_;
  std::set<size_t> raised_;  ///< dims of the base that are larger than others, which have a range then
};

}  // namespace

std::optional<SampleBase> find_sample_base(const ImportAt& import, const StopAt& stop_at,
                                           const StopAt& meant_at, const std::vector<int64_t>& anchor,
                                           const std::vector<std::vector<int64_t>>& asked) {
  BaseFinder finder(import, stop_at, meant_at, asked);
  return finder.run(anchor) ? std::optional(finder.take()) : std::nullopt;
}

std::optional<Dims> find_single_shape(const ImportAt& import, const Dims& anchor) {
  constexpr int64_t kMostSmall = 12;
  const auto is_free = [&](size_t d) { return anchor[d] == 0; };
  const auto num_free = std::count(anchor.begin(), anchor.end(), 0);
  // All small, from the largest down; then one of them among larger ones.
  for (const int64_t others : {int64_t{0}, int64_t{32}, int64_t{2}, int64_t{224}}) {
    for (size_t small = 0; small < anchor.size(); ++small) {
      if (others != 0 && (!is_free(small) || num_free == 1)) continue;
      for (int64_t extent = kMostSmall; extent >= 1; --extent) {
        Dims dims = anchor;
        for (size_t d = 0; d < dims.size(); ++d)
          if (is_free(d)) dims[d] = others == 0 || d == small ? extent : others;
        if (import(dims)) return dims;
      }
      if (others == 0) break;
    }
  }
  return std::nullopt;
}

bool takes_between_multiples(const ImportAt& import, const ir::SampleSet& set, size_t own_dims) {
  if (set.samples.empty()) return false;
  for (size_t d = 0; d < own_dims; ++d) {
    const bool is_dependent =
        std::any_of(set.dependents.begin(), set.dependents.end(),
                    [&](const ir::DependentDim& dependent) { return dependent.dim == d; });
    for (const int64_t more : {1, 3, 5, 11}) {
      if (is_dependent || more % set.multiples[d] == 0) continue;
      Dims dims = set.samples.front().dims;
      dims[d] += more;
      if (import(ir::with_dependents(std::move(dims), set.dependents))) return true;
    }
  }
  return false;
}

}  // namespace tensormill::frontend::onnx
