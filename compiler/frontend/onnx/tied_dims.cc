#include "compiler/frontend/onnx/tied_dims.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tensormill::frontend::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// A dim and another one or a number that are made equal.
struct Join {
  size_t dim = 0;
  std::optional<size_t> other = std::nullopt;  ///< a dim
  int64_t value = 0;                           ///< the number, where there is no other dim
  bool operator==(const Join&) const = default;
};
using Joins = std::vector<Join>;

/// Dims that are equal under joins, and to which number.
struct Class {
  std::set<size_t> dims;
  std::optional<int64_t> value;
  bool operator==(const Class&) const = default;
};

using Classes = std::vector<Class>;

/// Nothing where two numbers would have to be equal.
std::optional<Classes> classes_of(const Joins& joins) {
  Classes classes;
  const auto take_class = [&](size_t dim) {
    for (size_t i = 0; i < classes.size(); ++i) {
      if (classes[i].dims.count(dim) == 0) continue;
      Class found = std::move(classes[i]);
      classes.erase(classes.begin() + static_cast<std::ptrdiff_t>(i));
      return found;
    }
    return Class{{dim}, std::nullopt};
  };
  for (const Join& join : joins) {
    Class own = take_class(join.dim);
    std::optional<int64_t> value = join.value;
    if (join.other) {
      value = std::nullopt;
      if (own.dims.count(*join.other) == 0) {
        Class other = take_class(*join.other);
        own.dims.merge(other.dims);
        value = other.value;
      }
    }
    if (own.value && value && *own.value != *value) return std::nullopt;
    if (value) own.value = value;
    classes.push_back(std::move(own));
  }
  std::sort(classes.begin(), classes.end(), [](const Class& a, const Class& b) { return a.dims < b.dims; });
  return classes;
}

class TieFinder {
public:
  explicit TieFinder(const TiedNode& node)
      : node_(node), stop_(node.stop), numbers_(stop_.numbers), operands_(stop_.operands) {
    for (const ImportStop::Extents& operand : operands_) {
      for (size_t i = operand.begin; i < operand.begin + operand.count; ++i) {
        const std::optional<size_t> dim = dim_at(i);
        if (dim) place_.emplace(*dim, i);
      }
    }
    // A window's sides are given by attributes, too.
    for (const std::vector<int64_t>& list : stop_.attributes) {
      operands_.push_back({numbers_.size(), list.size()});
      numbers_.insert(numbers_.end(), list.begin(), list.end());
    }
    // What follows is best a dim for which there is no extent to have kernels of, the last ones first.
    for (const bool is_open : {true, false}) {
      for (auto found = place_.rbegin(); found != place_.rend(); ++found)
        if ((node.anchor[found->first] == 0) == is_open) dims_.push_back(found->first);
    }
  }

  std::vector<Tie> equal_dims() {
    if (dims_.size() < 2) return {};
    Joins all;
    for (size_t i = 1; i < dims_.size(); ++i) {
      const auto end = dims_.begin() + static_cast<std::ptrdiff_t>(i);
      const auto first = std::find_if(dims_.begin(), end, [&](size_t dim) {
        return is_allowed({dims_[i], dim});
      });
      if (first != end) all.push_back({dims_[i], *first});
    }
    for (const Joins& joins : {aligned(true, false), aligned(false, false), all}) {
      const std::optional<Classes> classes = classes_of(joins);
      if (passes(*classes)) return ties_of(fewest(*classes));
    }
    return {};
  }

  std::vector<Tie> tied_dims() {
    if (dims_.empty()) return {};
    // Where two numbers are at one place, the operands' and then the attributes'.
    for (int order = 0; order < 2; ++order) {
      for (const bool from_right : {true, false}) {
        const std::optional<Classes> classes = classes_of(aligned(from_right, true));
        if (classes->empty() || !passes(*classes)) continue;
        const Classes few = fewest(*classes);
        if (are_needed(few)) return ties_of(few);
      }
      if (stop_.attributes.empty()) break;
      const auto attributes = static_cast<std::ptrdiff_t>(stop_.operands.size());
      std::rotate(operands_.begin(), operands_.begin() + attributes, operands_.end());
    }
    reasons_.insert(stop_.reason);
    return search({}, kDeepest);
  }

private:
  /// Checks of one node that are met one after the other.
  static constexpr int kDeepest = 12;
  /// Larger attributes are no extents.
  static constexpr int64_t kMostScaled = int64_t{1} << 32;

  /// The dim that a number is, if it is none of the attributes.
  std::optional<size_t> dim_at(size_t number) const {
    for (size_t d = 0; d < node_.base.size(); ++d) {
      const bool is_extent = number < stop_.numbers.size() && node_.base[d] == numbers_[number];
      if (!node_.is_known[d] && is_extent) return d;
    }
    return std::nullopt;
  }

  /// What operands have at the same place, counted from one end; each is joined to those of other operands.
  Joins aligned(bool from_right, bool with_numbers) const {
    Joins joins;
    for (size_t a = 0; a < operands_.size(); ++a) {
      for (size_t b = a + 1; b < operands_.size(); ++b) {
        const ImportStop::Extents &one = operands_[a], &other = operands_[b];
        for (size_t i = 0; i < std::min(one.count, other.count); ++i) {
          const size_t p = one.begin + (from_right ? one.count - 1 - i : i),
                       q = other.begin + (from_right ? other.count - 1 - i : i);
          join(p, q, with_numbers, joins);
        }
      }
    }
    return joins;
  }

  /// Adds what makes two numbers of the stop equal, unless that cannot be.
  void join(size_t p, size_t q, bool with_numbers, Joins& joins) const {
    const std::optional<size_t> one = dim_at(p), other = dim_at(q);
    Join join;
    if (one && other) {
      if (*one == *other) return;
      join = {std::min(*one, *other), std::max(*one, *other)};
    } else if (with_numbers && (one || other)) {
      join = {one ? *one : *other, std::nullopt, numbers_[one ? q : p]};
      if (join.value < 2) return;
    } else {
      return;
    }
    Joins more = joins;
    more.push_back(join);
    if (is_allowed(join) && classes_of(more)) joins = std::move(more);
  }

  /// Whether two dims are equal in all shapes that are asked for and taken. A number may be another one
  /// there.
  bool is_allowed(const Join& join) const {
    return !join.other || std::all_of(node_.taken.begin(), node_.taken.end(),
                                      [&](const Dims& dims) { return dims[join.dim] == dims[*join.other]; });
  }

  ImportStop stop_with(const Classes& classes) {
    Dims dims = node_.base;
    for (const Class& each : classes) {
      for (const size_t dim : each.dims) dims[dim] = each.value.value_or(node_.base[root_of(each)]);
    }
    --node_.tries_left;
    return node_.stop_at(dims);
  }

  bool passes(const Classes& classes) { return is_farther(stop_with(classes), stop_); }

  /// The dim that others are: one for which there is an extent to have kernels of, else the first.
  size_t root_of(const Class& some) const {
    for (const size_t dim : some.dims) {
      if (node_.anchor[dim] != 0) return dim;
    }
    return *some.dims.begin();
  }

  /// Without what the node does not ask for.
  Classes fewest(Classes classes) {
    for (size_t i = 0; i < classes.size();) {
      // What is left of a class that was split is looked at again.
      if (drop_number(classes, i)) continue;
      drop_single(classes, i);
      if (split(classes, i)) continue;
      ++i;
    }
    classes.erase(std::remove_if(classes.begin(), classes.end(),
                                 [](const Class& each) { return each.dims.size() < 2 && !each.value; }),
                  classes.end());
    return classes;
  }

  bool drop_number(Classes& classes, size_t at) {
    if (!classes[at].value) return false;
    Classes less = classes;
    less[at].value.reset();
    if (!passes(less)) return false;
    classes = std::move(less);
    return true;
  }

  /// Each of a class that may be another one alone; what is left does not decide about that.
  void drop_single(Classes& classes, size_t at) {
    const std::set<size_t> dims = classes[at].dims;
    for (const size_t dim : dims) {
      if (classes[at].dims.size() < 2) return;
      Classes less = classes;
      less[at].dims.erase(dim);
      if (passes(less)) classes = std::move(less);
    }
  }

  /// Into two, the first of which has the first dim, the smaller ones first.
  bool split(Classes& classes, size_t at) {
    const std::vector<size_t> dims(classes[at].dims.begin(), classes[at].dims.end());
    // Of many dims the parts are small, or there are more than can be tried.
    constexpr size_t kFewDims = 8, kSmallPart = 3;
    for (size_t count = 1; count + 2 < dims.size(); ++count) {
      if (dims.size() > kFewDims && count >= kSmallPart) return false;
      // Which of the others are in the first part.
      std::vector<bool> chosen(dims.size() - 1, false);
      std::fill_n(chosen.begin(), count, true);
      do {
        Class part{{dims[0]}, classes[at].value};
        for (size_t i = 1; i < dims.size(); ++i) {
          if (chosen[i - 1]) part.dims.insert(dims[i]);
        }
        Classes parts = classes;
        for (const size_t dim : part.dims) parts[at].dims.erase(dim);
        parts.push_back(std::move(part));
        if (passes(parts)) {
          classes = std::move(parts);
          return true;
        }
        if (node_.tries_left <= 0) return false;
      } while (std::prev_permutation(chosen.begin(), chosen.end()));
    }
    return false;
  }

  /// Whether no number beside one of them, nor a multiple of it, would do.
  bool are_needed(const Classes& classes) {
    for (size_t i = 0; i < classes.size(); ++i) {
      if (!classes[i].value) continue;
      const int64_t value = *classes[i].value;
      for (const int64_t near : {value - 1, value + 1, 2 * value, 3 * value}) {
        Classes others = classes;
        others[i].value = near;
        if (near > 1 && passes(others)) return false;
      }
    }
    return true;
  }

  /// Numbers that a dim may be, 1 last: it is what most nodes take beside any other.
  std::vector<int64_t> candidates() const {
    std::vector<int64_t> numbers;
    const auto add = [&](int64_t number) {
      if (number > 1 && std::find(numbers.begin(), numbers.end(), number) == numbers.end())
        numbers.push_back(number);
    };
    for (size_t i = 0; i < stop_.numbers.size(); ++i) {
      if (!dim_at(i)) add(stop_.numbers[i]);
    }
    // Gates have as many rows each as a hidden size says.
    for (const int64_t times : {1, 2, 3, 4, 6, 8}) {
      for (size_t i = stop_.numbers.size(); i < numbers_.size(); ++i) {
        if (numbers_[i] < kMostScaled) add(times * numbers_[i]);
      }
    }
    // Points, sides of a box, real and imaginary parts.
    for (const int64_t number : {2, 3, 4}) add(number);
    numbers.push_back(1);
    return numbers;
  }

  /// With one more join the import gets farther, or it ends at another check of the node and gets farther
  /// with more of them.
  std::vector<Tie> search(const Joins& joins, int depth) {
    Joins choices;
    for (size_t i = 0; i < dims_.size(); ++i) {
      for (size_t k = i + 1; k < dims_.size(); ++k) choices.push_back({dims_[i], dims_[k]});
    }
    for (const int64_t value : candidates()) {
      for (const size_t dim : dims_) choices.push_back({dim, std::nullopt, value});
    }
    std::vector<std::pair<Joins, std::string>> steps;
    for (const Join& choice : choices) {
      if (!is_allowed(choice)) continue;
      Joins more = joins;
      more.push_back(choice);
      const std::optional<Classes> classes = classes_of(more);
      if (!classes || (!joins.empty() && *classes == classes_of(joins))) continue;
      if (node_.tries_left <= 0) return {};
      const ImportStop stop = stop_with(*classes);
      if (is_farther(stop, stop_)) {
        const Classes few = fewest(*classes);
        if (are_needed(few)) return ties_of(few);
        continue;
      }
      const bool is_same = stop.node == stop_.node && stop.converted == stop_.converted;
      if (!is_same || depth == 0 || reasons_.count(stop.reason) != 0) continue;
      steps.emplace_back(std::move(more), stop.reason);
      // One is enough for most nodes; behind a first step it is a long way.
      if (joins.empty()) continue;
      std::vector<Tie> ties = search_on(steps, depth);
      if (!ties.empty()) return ties;
    }
    return search_on(steps, depth);
  }

  std::vector<Tie> search_on(std::vector<std::pair<Joins, std::string>>& steps, int depth) {
    for (const auto& [more, reason] : std::exchange(steps, {})) {
      if (!reasons_.insert(reason).second) continue;
      std::vector<Tie> ties = search(more, depth - 1);
      if (!ties.empty()) return ties;
    }
    return {};
  }

  std::vector<Tie> ties_of(const Classes& classes) const {
    std::vector<Tie> ties;
    for (const Class& each : classes) {
      const size_t root = root_of(each);
      for (const size_t dim : each.dims) {
        if (each.value) {
          const auto found = std::find(stop_.numbers.begin(), stop_.numbers.end(), *each.value);
          Tie tie{dim, std::nullopt, *each.value, place_.at(dim)};
          if (found != stop_.numbers.end()) tie.number = static_cast<size_t>(found - stop_.numbers.begin());
          ties.push_back(tie);
        } else if (dim != root) {
          ties.push_back({dim, root, node_.base[root], place_.at(dim), place_.at(root)});
        }
      }
    }
    return ties;
  }

  const TiedNode& node_;
  const ImportStop& stop_;
  std::vector<int64_t> numbers_;  ///< the stop's and, behind them, the attributes
  std::vector<ImportStop::Extents> operands_;
  std::map<size_t, size_t> place_;  ///< of each dim that is an extent: where in the stop's numbers
  std::vector<size_t> dims_;
  std::set<std::string> reasons_;  ///< checks that were met
};

}  // namespace

bool is_farther(const ImportStop& stop, const ImportStop& than) {
  return stop.node == -1 || std::pair(stop.node, stop.converted) > std::pair(than.node, than.converted);
}

std::vector<Tie> find_equal_dims(const TiedNode& node) { return TieFinder(node).equal_dims(); }

std::vector<Tie> find_tied_dims(const TiedNode& node) { return TieFinder(node).tied_dims(); }

}  // namespace tensormill::frontend::onnx
