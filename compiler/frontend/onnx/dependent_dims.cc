#include "compiler/frontend/onnx/dependent_dims.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "compiler/frontend/onnx/tied_dims.h"

namespace tensormill::frontend::onnx {

namespace {

using Dims = std::vector<int64_t>;

/// Where to look: `scale` times small primes, and `far` from there.
struct Reach {
  int64_t scale = 0, far = 0;
};
/// A far step of many divisors, as strides and patches have them, else one that stays in short tables.
constexpr std::array<Reach, 9> kReaches = {{{8, kFarStep},
                                            {1, kFarStep},
                                            {64, kFarStep},
                                            {512, kFarStep},
                                            {4096, kFarStep},
                                            {1, 8},
                                            {1, 1},
                                            {8, 8},
                                            {64, 64}}};
/// Where all extents are multiples of 3, or of 5.
constexpr std::array<Reach, 2> kOtherDivisors = {{{6, kFarStep}, {10, kFarStep}}};
/// Imports for what is searched for without a sign of where it is.
constexpr int64_t kMostTries = 2000;
/// The longest hop of which both ends are looked for.
constexpr int64_t kLongestHop = int64_t{1} << 14;

/// value(x) = offset + scale × floor((x + add) / div), for one dim.
struct Line {
  int64_t offset = 0, scale = 0, add = 0, div = 1;
  int64_t quotient(int64_t x) const {
    const int64_t up = x + add, whole = up / div;
    return up % div < 0 ? whole - 1 : whole;
  }
  int64_t at(int64_t x) const { return offset + scale * quotient(x); }
};

/// Two of a node's numbers that are to be equal, solved for one dim.
class Equation {
public:
  Equation(const StopAt& stop_at, const std::vector<ir::DependentDim>& known, ImportStop stop, Dims base,
           size_t first, size_t second, size_t dim, int64_t slope, int64_t far)
      : stop_at_(stop_at),
        known_(known),
        stop_(std::move(stop)),
        base_(std::move(base)),
        first_(first),
        second_(second),
        dim_(dim),
        slope_(slope),
        far_(far) {}

  /// The dim's value at values of the others; nothing where the import ends elsewhere, whichever the dim is.
  std::optional<int64_t> solve(const Dims& some) const {
    constexpr int64_t kMany = 16;
    for (const int64_t more : {int64_t{0}, kMany * far_}) {
      Dims dims = some;
      dims[dim_] += more;
      if (const std::optional<int64_t> value = solve_at(dims)) return value;
    }
    return std::nullopt;
  }

  /// How the dim follows from all others; nothing where there is no formula.
  std::optional<DimFormula> formula(const std::vector<bool>& is_known) const {
    const std::optional<int64_t> here = solve(base_);
    if (!here) return std::nullopt;
    std::vector<std::pair<size_t, Line>> lines;
    for (size_t other = 0; other < base_.size(); ++other) {
      if (other == dim_ || is_known[other]) continue;
      const std::optional<int64_t> far = along(other, far_);
      if (!far) return std::nullopt;
      if (*far == *here) continue;
      const std::optional<Line> line = line_of(other, *here);
      if (!line) return std::nullopt;
      lines.emplace_back(other, *line);
    }
    for (const DimFormula& candidate : {sum_of(lines, *here), product_of(lines, *here)}) {
      if (holds(candidate, lines)) return candidate;
    }
    return std::nullopt;
  }

private:
  std::optional<int64_t> solve_at(const Dims& some) const {
    const Dims dims = ir::with_dependents(some, known_);
    const ImportStop stop = stop_at_(dims);
    if (stop.node == -1) return dims[dim_];
    if (stop.node != stop_.node || stop.numbers.size() != stop_.numbers.size()) return std::nullopt;
    // slope / far is what their difference grows by.
    const int64_t lacks = (stop.numbers[second_] - stop.numbers[first_]) * far_;
    if (lacks % slope_ != 0) return std::nullopt;
    return dims[dim_] + lacks / slope_;
  }

  std::optional<int64_t> along(size_t other, int64_t more) const {
    Dims dims = base_;
    dims[other] += more;
    return solve(dims);
  }

  /// Both ends of one hop: where the value changes for the first time and for the second.
  std::optional<Line> line_of(size_t other, int64_t here) const {
    // The model may take multiples alone.
    int64_t step = 1;
    while (step <= 128 && !along(other, step)) step *= 2;
    int64_t begin = 0, value = here;
    std::array<int64_t, 2> ends{}, values{};
    for (size_t i = 0; i < ends.size(); ++i) {
      int64_t low = begin / step, high = low + 1;
      std::optional<int64_t> found;
      while ((found = along(other, high * step)) == value && (high - low) * step < kLongestHop)
        high += high - begin / step;
      if (!found || *found == value) return std::nullopt;
      while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        const std::optional<int64_t> at = along(other, middle * step);
        if (!at) return std::nullopt;
        (*at == value ? low : high) = middle;
      }
      found = along(other, high * step);
      if (!found) return std::nullopt;
      begin = ends[i] = high * step;
      value = values[i] = *found;
    }
    Line line;
    line.div = ends[1] - ends[0];
    line.scale = values[1] - values[0];
    if (line.scale % line.div == 0) {
      line.scale /= line.div;
      line.div = 1;
    } else {
      const int64_t rest = (base_[other] + ends[0]) % line.div;
      line.add = rest == 0 ? 0 : line.div - rest;
    }
    line.offset = here - line.scale * line.quotient(base_[other]);
    for (const int64_t more : {int64_t{0}, ends[0], ends[1], 3 * step, 7 * step, far_}) {
      if (along(other, more) != line.at(base_[other] + more)) return std::nullopt;
    }
    return line;
  }

  static DimTerm term_of(size_t other, const Line& line) {
    return {static_cast<int32_t>(other), 1, line.add, line.div};
  }

  DimFormula sum_of(const std::vector<std::pair<size_t, Line>>& lines, int64_t here) const {
    DimFormula sum{here, {}};
    for (const auto& [other, line] : lines) {
      sum.products.push_back({line.scale, {term_of(other, line)}});
      sum.offset -= line.scale * line.quotient(base_[other]);
    }
    return sum;
  }

  /// What each line adds is one product at the base; the rest is the same for all.
  DimFormula product_of(const std::vector<std::pair<size_t, Line>>& lines, int64_t here) const {
    DimFormula product{here, {}};
    if (lines.size() < 2) return product;
    int64_t factors = 1;
    product.products.emplace_back();
    for (const auto& [other, line] : lines) {
      const int64_t quotient = line.quotient(base_[other]);
      if (quotient == 0 || __builtin_mul_overflow(factors, quotient, &factors)) return {here, {}};
      product.products[0].factors.push_back(term_of(other, line));
    }
    const int64_t part = here - lines[0].second.offset;
    if (part % factors != 0) return {here, {}};
    product.products[0].scale = part / factors;
    product.offset = lines[0].second.offset;
    return product;
  }

  /// Also where several dims are other ones.
  bool holds(const DimFormula& formula, const std::vector<std::pair<size_t, Line>>& lines) const {
    for (const int64_t count : {0, 1, 3}) {
      Dims dims = base_;
      int64_t number = count;
      for (const auto& [other, line] : lines) dims[other] += far_ * std::exchange(number, 2 * number);
      if (solve(dims) != evaluate(formula, dims)) return false;
    }
    return true;
  }

  const StopAt& stop_at_;
  const std::vector<ir::DependentDim>& known_;
  const ImportStop stop_;
  const Dims base_;
  const size_t first_, second_, dim_;
  const int64_t slope_, far_;
};

class Finder {
public:
  Finder(const StopAt& stop_at, const Dims& anchor, const std::vector<Dims>& taken)
      : stop_at_(stop_at), anchor_(anchor), taken_(taken) {}

  /// From a shape of which no two dims are multiples of each other, nor, of the first ones, sums; of two dims
  /// the later one is larger, or smaller if they `fall`.
  bool run(const Reach& reach, bool fall) {
    far_ = reach.far;
    falls_ = fall;
    dependents_.clear();
    is_known_.assign(anchor_.size(), false);
    base_ = base_of(reach);
    if (fall) std::reverse(base_.begin(), base_.end());
    while (true) {
      const ImportStop stop = stop_at_(settled(base_));
      if (stop.node == -1) return !dependents_.empty();
      if (dependents_.size() == anchor_.size() || !find_next(stop)) return false;
    }
  }

  /// The reaches at which no import fails the first check that fails elsewhere, which is one of divisors:
  /// what passes it without them is no equality of dims, though they may have such values.
  std::vector<Reach> divided() const {
    const ImportStop usual = stop_at_(base_of(kReaches[0]));
    std::vector<Reach> reaches;
    if (usual.node == -1) return reaches;
    std::copy_if(kOtherDivisors.begin(), kOtherDivisors.end(), std::back_inserter(reaches),
                 [&](const Reach& reach) {
                   const ImportStop stop = stop_at_(base_of(reach));
                   return !is_farther(usual, stop) &&
                          (is_farther(stop, usual) || (!stop.reason.empty() && stop.reason != usual.reason));
                 });
    return reaches;
  }

  std::vector<ir::DependentDim> take() { return std::move(dependents_); }

  /// Whether a dim that follows from another one may as well be less or more than that: a window that is as
  /// large as what it goes over.
  bool has_ranges() const {
    return std::any_of(dependents_.begin(), dependents_.end(), [&](const ir::DependentDim& each) {
      const std::optional<size_t> same = ir::same_dim(each.value);
      if (!same) return false;
      const Dims here = settled(base_);
      Dims less = base_, more = here;
      less[*same] += far_;
      less = settled(less);
      less[each.dim] = here[each.dim];
      more[each.dim] += far_;
      return stop_at_(less).node == -1 || stop_at_(more).node == -1;
    });
  }

private:
  Dims settled(Dims dims) const { return ir::with_dependents(std::move(dims), dependents_); }

  Dims base_of(const Reach& reach) const {
    Dims base;
    for (int64_t number = 3; base.size() < anchor_.size(); number += 2) {
      if (is_prime(number)) base.push_back(reach.scale * number);
    }
    return base;
  }

  static bool is_prime(int64_t number) {
    for (int64_t factor = 2; factor * factor <= number; ++factor) {
      if (number % factor == 0) return false;
    }
    return true;
  }

  /// What a node asks for is most often that extents are equal, all of them at once.
  bool find_next(const ImportStop& stop) {
    const std::function<ImportStop(const Dims&)> settled_stop = [this](const Dims& dims) {
      return stop_at_(settled(dims));
    };
    const TiedNode node{settled_stop, stop, base_, is_known_, anchor_, taken_, tries_left_};
    return take_all(find_equal_dims(node), stop) || find_one(stop) || take_all(find_tied_dims(node), stop) ||
           find_fixed(stop);
  }

  /// What follows is best a dim that there is for all values of the others, as a sum is and a difference is
  /// not; then one for which there is no extent to have kernels of, and of which there is one for each value
  /// of the others; the last ones first.
  bool find_one(const ImportStop& stop) {
    const std::vector<ImportStop> larger = larger_stops();
    for (const bool is_sum : {true, false}) {
      for (const bool is_whole : {true, false}) {
        for (const bool is_open : {true, false}) {
          for (size_t d = base_.size(); d-- > 0;) {
            if (!is_like(larger[d], stop) || (anchor_[d] == 0) != is_open) continue;
            if (solve_for(d, stop, larger[d], is_whole, is_sum)) return true;
          }
        }
      }
    }
    return false;
  }

  /// Where each dim that is not known is larger; those of the others got nowhere.
  std::vector<ImportStop> larger_stops() const {
    std::vector<ImportStop> larger(base_.size());
    for (size_t d = 0; d < base_.size(); ++d) {
      Dims dims = base_;
      dims[d] += far_;
      if (!is_known_[d]) larger[d] = stop_at_(settled(dims));
    }
    return larger;
  }

  static bool is_like(const ImportStop& larger, const ImportStop& stop) {
    return larger.node == stop.node && larger.numbers.size() == stop.numbers.size();
  }

  /// A dim of which one number alone will do, which no operand need have: what an exporter wrote a batch
  /// into.
  bool find_fixed(const ImportStop& stop) {
    const std::vector<ImportStop> larger = larger_stops();
    for (size_t d = 0; d < base_.size(); ++d) {
      if (!is_like(larger[d], stop)) continue;
      std::set<int64_t> tried;
      for (size_t i = 0; i < stop.numbers.size(); ++i) {
        for (size_t k = i + 1; k < stop.numbers.size(); ++k) {
          const int64_t apart = stop.numbers[i] - stop.numbers[k];
          const int64_t slope = larger[d].numbers[i] - larger[d].numbers[k] - apart;
          if (slope == 0 || -apart * far_ % slope != 0) continue;
          const int64_t value = base_[d] - apart * far_ / slope;
          if (tries_left_ <= 0) return false;
          if (value > 1 && tried.insert(value).second && take_fixed(d, value, stop)) return true;
        }
      }
    }
    return false;
  }

  bool take_fixed(size_t d, int64_t value, const ImportStop& stop) {
    if (anchor_[d] != 0 && anchor_[d] != value) return false;
    const auto passes = [&](int64_t extent) {
      Dims dims = base_;
      dims[d] = extent;
      --tries_left_;
      return is_farther(stop_at_(settled(dims)), stop);
    };
    if (!passes(value)) return false;
    const std::array<int64_t, 4> others = {value - 1, value + 1, 2 * value, 3 * value};
    const bool is_alone =
        std::none_of(others.begin(), others.end(), [&](int64_t other) { return other > 1 && passes(other); });
    return is_alone && add({{d, DimFormula{value, {}}}}, stop);
  }

  bool solve_for(size_t d, const ImportStop& stop, const ImportStop& larger, bool is_whole, bool is_sum) {
    std::set<std::pair<int64_t, int64_t>> tried;  // slope, difference
    for (size_t i = 0; i < stop.numbers.size(); ++i) {
      for (size_t k = i + 1; k < stop.numbers.size(); ++k) {
        const int64_t apart = stop.numbers[i] - stop.numbers[k];
        const int64_t slope = larger.numbers[i] - larger.numbers[k] - apart;
        if (slope == 0 || apart == 0 || (slope == far_ || slope == -far_) != is_whole) continue;
        if (-apart * far_ % slope != 0 || !tried.emplace(slope, apart).second) continue;
        const Equation equation(stop_at_, dependents_, stop, base_, i, k, d, slope, far_);
        if (take(equation, d, stop, is_sum)) return true;
      }
    }
    return false;
  }

  /// The import gets farther where the equation holds, also elsewhere.
  bool take(const Equation& equation, size_t d, const ImportStop& stop, bool is_sum) {
    Dims dims = base_;
    const std::optional<int64_t> value = equation.solve(base_);
    if (!value || *value < 1) return false;
    dims[d] = *value;
    if (!is_farther(stop_at_(settled(dims)), stop)) return false;
    const std::optional<DimFormula> formula = equation.formula(is_known_);
    // An extent of 1 broadcasts: a number says nothing of what else the dim may be.
    if (!formula || formula->products.empty()) return false;
    if (is_sum != std::all_of(formula->products.begin(), formula->products.end(),
                              [](const DimProduct& product) { return product.scale > 0; }))
      return false;
    return add({{d, *formula}}, stop);
  }

  /// Several equations of one node.
  bool take_all(const std::vector<Tie>& ties, const ImportStop& stop) {
    std::vector<ir::DependentDim> more;
    for (const Tie& tie : ties) {
      std::optional<DimFormula> formula;
      if (tie.same) {
        formula = DimFormula{0, {{1, {{static_cast<int32_t>(*tie.same), 1, 0, 1}}}}};
      } else {
        formula = formula_of(tie, stop);
      }
      if (!formula) return false;
      more.push_back({tie.dim, *std::move(formula)});
    }
    return !more.empty() && add(more, stop);
  }

  /// What the number is of the free dims, which is most often none of them.
  std::optional<DimFormula> formula_of(const Tie& tie, const ImportStop& stop) const {
    bool is_constant = !tie.number;
    if (!is_constant) {
      const ImportStop other = stop_at_(settled(all_larger(far_)));
      const bool is_same = other.node == stop.node && other.numbers.size() == stop.numbers.size();
      is_constant = is_same && other.numbers[*tie.number] == tie.value;
    }
    if (is_constant) {
      const bool is_other = anchor_[tie.dim] != 0 && anchor_[tie.dim] != tie.value;
      return is_other ? std::nullopt : std::optional(DimFormula{tie.value, {}});
    }
    return Equation(stop_at_, dependents_, stop, base_, tie.at, *tie.number, tie.dim, far_, far_)
        .formula(is_known_);
  }

  Dims all_larger(int64_t step) const {
    constexpr size_t kFewSteps = 8;
    Dims larger = base_;
    for (size_t i = 0; i < larger.size(); ++i) {
      const size_t at = falls_ ? larger.size() - 1 - i : i;
      larger[i] += step * static_cast<int64_t>(at % kFewSteps + 1);
    }
    return larger;
  }

  /// Also where all dims are larger, less so where what they make is larger than a tensor may be.
  bool gets_farther(const ImportStop& stop) const {
    if (!is_farther(stop_at_(settled(base_)), stop)) return false;
    constexpr int64_t kLargeEnough = 8;
    for (int64_t step = far_;; step /= kLargeEnough) {
      const ImportStop larger = stop_at_(settled(all_larger(step)));
      if (is_farther(larger, stop)) return true;
      if (larger.reason == stop.reason || step <= kLargeEnough) return false;
    }
  }

  /// They are right if the import gets farther, also elsewhere. They come before those that follow from them.
  bool add(const std::vector<ir::DependentDim>& more, const ImportStop& stop) {
    const std::vector<ir::DependentDim> before = dependents_;
    dependents_.insert(dependents_.begin(), more.begin(), more.end());
    for (const ir::DependentDim& each : more) is_known_[each.dim] = true;
    const bool is_kept =
        std::all_of(taken_.begin(), taken_.end(), [&](const Dims& dims) { return settled(dims) == dims; });
    if (is_kept && gets_farther(stop)) return true;
    dependents_ = before;
    for (const ir::DependentDim& each : more) is_known_[each.dim] = false;
    return false;
  }

  const StopAt& stop_at_;
  const Dims& anchor_;
  const std::vector<Dims>& taken_;
  int64_t far_ = 0;
  bool falls_ = false;
  int64_t tries_left_ = kMostTries;
  Dims base_;
  std::vector<bool> is_known_;
  std::vector<ir::DependentDim> dependents_;
};

}  // namespace

std::vector<ir::DependentDim> find_dependents(const StopAt& stop_at, const std::vector<int64_t>& anchor,
                                              const std::vector<std::vector<int64_t>>& taken) {
  Finder finder(stop_at, anchor, taken);
  std::vector<Reach> reaches = finder.divided();
  reaches.insert(reaches.end(), kReaches.begin(), kReaches.end());
  for (const Reach& reach : reaches) {
    const bool is_found = finder.run(reach, false);
    const bool has_ranges = is_found && finder.has_ranges();
    std::vector<ir::DependentDim> found = finder.take();
    if (is_found && !has_ranges) return found;
    // Where the later dims are larger a node may want less of them, beside what else it wants.
    if (!finder.run(reach, true)) {
      if (is_found) return found;
      continue;
    }
    std::vector<ir::DependentDim> others = finder.take();
    return is_found && others.size() >= found.size() ? found : others;
  }
  return {};
}

}  // namespace tensormill::frontend::onnx
