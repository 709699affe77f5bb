#include "compiler/plan/dim_fit.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "compiler/plan/dim_algebra.h"
#include "runtime/base/error.h"
#include "runtime/package/plan_formulas.h"
#include "runtime/package/plan_set.h"

namespace tensormill::plan {

namespace {

/// Strides and patches multiply up to this where samples are near each other alone.
constexpr int64_t kMaxDivisor = 64;

}  // namespace

DimFitter::DimFitter(std::vector<std::vector<int64_t>> samples, std::vector<float> factors)
    : samples_(std::move(samples)), factors_(std::move(factors)) {
  TM_CHECK(!samples_.empty(), "no samples");
  terms_.resize(samples_.front().size());
  for (size_t d = 0; d < terms_.size(); ++d) terms_[d].insert(identity(d));
}

bool DimFitter::holds(const DimFormula& formula, const std::vector<int64_t>& values) const {
  for (size_t s = 0; s < samples_.size(); ++s) {
    if (evaluate(formula, samples_[s]) != values[s]) return false;
  }
  return true;
}

/// Whether a sample has the first one's values of all free dims but one.
bool DimFitter::differs_alone(size_t sample, size_t dim) const {
  for (size_t d = 0; d < terms_.size(); ++d) {
    if (d != dim && samples_[sample][d] != samples_[0][d]) return false;
  }
  return true;
}

/// The first sample differs from others in one dim alone.
bool DimFitter::depends_on(size_t dim, const std::vector<int64_t>& values) const {
  for (size_t s = 1; s < samples_.size(); ++s) {
    const bool alone = samples_[s][dim] != samples_[0][dim] && differs_alone(s, dim);
    if (alone && values[s] != values[0]) return true;
  }
  return false;
}

std::vector<size_t> DimFitter::dims_of(const std::vector<int64_t>& values) const {
  std::vector<size_t> dims;
  for (size_t d = 0; d < terms_.size(); ++d) {
    if (depends_on(d, values)) dims.push_back(d);
  }
  return dims;
}

std::optional<DimFormula> DimFitter::fit_line(size_t dim, const std::vector<int64_t>& values) const {
  for (size_t s = 1; s < samples_.size(); ++s) {
    const int64_t step = samples_[s][dim] - samples_[0][dim];
    if (step == 0) continue;
    if ((values[s] - values[0]) % step != 0) return std::nullopt;
    const int64_t mul = (values[s] - values[0]) / step;
    const DimFormula linear =
        single(1, {static_cast<int32_t>(dim), mul, values[0] - mul * samples_[0][dim], 1});
    return holds(linear, values) ? std::optional(linear) : std::nullopt;
  }
  return std::nullopt;
}

/// The formula with the summand inside of its quotient that fits, if there is one.
std::optional<DimFormula> DimFitter::fit_phase(DimFormula formula, const std::vector<int64_t>& values) const {
  DimTerm& term = formula.products[0].factors[0];
  const int64_t scale = formula.products[0].scale;
  for (int64_t add = 0; add < term.div; ++add) {
    term.add = add;
    formula.offset = 0;
    formula.offset = values[0] - evaluate(formula, samples_[0]);
    if (!holds(formula, values)) continue;
    // A summand that is taken off stays outside: what is left of the quotient is no less than 0.
    if (formula.offset > 0 && formula.offset % scale == 0) take_inside(formula);
    return formula;
  }
  return std::nullopt;
}

/// The growth up to another sample is scale × mul / div, exactly where div divides the distance. Of what the
/// samples say the least divisor that holds.
std::optional<DimFormula> DimFitter::fit_growth(size_t dim, const std::vector<int64_t>& values) const {
  int64_t common = 0;
  for (const int64_t value : values) common = std::gcd(common, value - values[0]);
  std::set<std::array<int64_t, 3>> quotients;  // div, mul, scale
  for (size_t s = 1; s < samples_.size(); ++s) {
    const int64_t distance = samples_[s][dim] - samples_[0][dim], growth = values[s] - values[0];
    if (distance <= 0 || growth <= 0 || !differs_alone(s, dim)) continue;
    for (const int64_t scale : {common, int64_t{1}}) {
      if (growth % scale != 0) continue;
      const int64_t factor = std::gcd(growth / scale, distance), div = distance / factor;
      // A quotient that the distance does not hold several times may be any number of others.
      if (div <= distance / 4) quotients.insert({div, growth / scale / factor, scale});
    }
  }
  for (const auto& [div, mul, scale] : quotients) {
    const DimFormula formula = single(scale, {static_cast<int32_t>(dim), mul, 0, div});
    if (auto fitted = fit_phase(formula, values)) return fitted;
  }
  return std::nullopt;
}

/// Between two places where a quotient changes lie whole periods of it, and each adds the scale.
std::optional<DimFormula> DimFitter::fit_period(size_t dim, const std::vector<int64_t>& values) const {
  std::map<int64_t, int64_t> along;
  for (size_t s = 0; s < samples_.size(); ++s) {
    if (differs_alone(s, dim)) along[samples_[s][dim]] = values[s];
  }
  std::vector<std::pair<int64_t, int64_t>> changes;  // behind each: the dim and the value
  int64_t scale = 0;
  for (auto next = along.begin(); next != along.end(); ++next) {
    const auto before = along.find(next->first - 1);
    if (before == along.end() || before->second == next->second) continue;
    changes.emplace_back(*next);
    scale = next->second - before->second;
  }
  if (changes.size() < 2 || scale == 0) return std::nullopt;
  const int64_t distance = changes.back().first - changes.front().first;
  const int64_t growth = changes.back().second - changes.front().second;
  if (growth % scale != 0 || growth / scale <= 0 || distance % (growth / scale) != 0) return std::nullopt;
  return fit_phase(single(scale, {static_cast<int32_t>(dim), 1, 0, distance / (growth / scale)}), values);
}

std::optional<DimFormula> DimFitter::fit_quotient(size_t dim, const std::vector<int64_t>& values) const {
  if (auto formula = fit_growth(dim, values)) return formula;
  if (auto formula = fit_period(dim, values)) return formula;
  return fit_small_quotient(dim, values);
}

/// Small divisors, one by one, where no far sample tells.
std::optional<DimFormula> DimFitter::fit_small_quotient(size_t dim,
                                                        const std::vector<int64_t>& values) const {
  int64_t common = 0;
  for (const int64_t value : values) common = std::gcd(common, value - values[0]);
  std::vector<int64_t> scales = {common};
  if (common != 1) scales.push_back(1);
  for (const int64_t scale : scales) {
    for (int64_t div = 2; div <= kMaxDivisor; ++div) {
      for (int64_t mul = 1; mul < std::min<int64_t>(div, 8); ++mul) {
        const DimFormula formula = single(scale, {static_cast<int32_t>(dim), mul, 0, div});
        if (auto fitted = fit_phase(formula, values)) return fitted;
      }
    }
  }
  return std::nullopt;
}

/// Makes a dim of what is derived from extents of `dim` alone.
std::optional<DimFormula> DimFitter::derive(size_t dim, DerivedExtent extent,
                                            const std::vector<int64_t>& values) {
  // More of them no package holds.
  if (derived_.size() >= static_cast<size_t>(package::kMaxDerivedExtents)) return std::nullopt;
  if (!package::fits_package(extent)) return std::nullopt;
  const size_t at = samples_.front().size();
  for (size_t s = 0; s < values.size(); ++s) samples_[s].push_back(values[s]);
  derived_.push_back(std::move(extent));
  derived_of_.push_back(dim);
  return single(1, identity(at));
}

bool DimFitter::gives(const DerivedExtent& extent, const std::vector<int64_t>& values) const {
  for (size_t s = 0; s < values.size(); ++s) {
    if (evaluate(extent, samples_[s]) != values[s]) return false;
  }
  return true;
}

/// The dim, or a known extent of it, times one of the model's factors.
std::optional<DimFormula> DimFitter::fit_scaled(size_t dim, const std::vector<int64_t>& values) {
  const DimFormula own = single(1, identity(dim));
  for (const float factor : factors_) {
    if (gives({own, factor}, values)) return derive(dim, {own, factor}, values);
    for (const auto& [extents, formula] : known_) {
      if (formula && gives({*formula, factor}, values)) return derive(dim, {*formula, factor}, values);
    }
  }
  return std::nullopt;
}

void DimFitter::add_ratio(const std::vector<int64_t>& up, const std::vector<int64_t>& down) {
  const std::optional<DimFormula> of_up = fit(up), of_down = fit(down);
  const bool is_positive = std::all_of(down.begin(), down.end(), [](int64_t value) { return value > 0; });
  if (of_up && of_down && is_positive) ratios_.push_back({*of_up, *of_down});
}

/// An extent times the quotient of another and itself: the other one, but where the product rounds down.
std::optional<DimFormula> DimFitter::fit_ratio(const std::vector<int64_t>& values,
                                               const std::vector<size_t>& dims) {
  for (const ExtentRatio& ratio : ratios_) {
    DerivedExtent extent{ratio.down};
    extent.ratio = ratio;
    if (gives(extent, values)) return derive(dims.size() == 1 ? dims[0] : terms_.size(), extent, values);
  }
  return std::nullopt;
}

/// What has a quotient of its own, but keeps to that of another, the smallest or the largest of both: up to
/// the size that its own makes, or down to it.
std::optional<DimFormula> DimFitter::fit_other_ratio(const std::vector<int64_t>& values,
                                                     const std::vector<size_t>& dims) {
  for (const ExtentRatio& own : ratios_) {
    if (!own.up.products.empty()) continue;
    for (const ExtentRatio& other : ratios_) {
      DerivedExtent smallest{own.down};
      smallest.ratio = other;
      smallest.rounds = true;
      DerivedExtent largest = smallest;
      smallest.most = largest.least = own.up.offset;
      for (const DerivedExtent& extent : {smallest, largest}) {
        if (gives(extent, values)) return derive(dims.size() == 1 ? dims[0] : terms_.size(), extent, values);
      }
    }
  }
  return std::nullopt;
}

/// A known extent times one of the model's small quotients, or halved, once or several times: what is cut off
/// on both sides.
std::optional<DimFormula> DimFitter::fit_half(const std::vector<int64_t>& values,
                                              const std::vector<size_t>& dims) {
  std::vector<float> factors = {0.5F, 0.25F, 0.125F};
  factors.insert(factors.end(), quotients_.begin(), quotients_.end());
  for (const float factor : factors) {
    for (const auto& [extents, formula] : known_) {
      if (formula && varies(extents) && gives({*formula, factor}, values))
        return derive(dims.size() == 1 ? dims[0] : terms_.size(), {*formula, factor}, values);
    }
  }
  return std::nullopt;
}

/// What has a formula where it is between two bounds, and is one of them elsewhere. A dim of its own. A known
/// extent and a number, or a quotient.
std::optional<DimFormula> DimFitter::fit_within(size_t dim, const std::vector<int64_t>& values, int64_t least,
                                                int64_t most, bool is_quotient) {
  constexpr size_t kFewest = 4;
  std::vector<std::vector<int64_t>> inner_samples;
  std::vector<int64_t> inner;
  for (size_t s = 0; s < values.size(); ++s) {
    if (values[s] <= least || values[s] >= most) continue;
    inner_samples.emplace_back(samples_[s].begin(),
                               samples_[s].begin() + static_cast<std::ptrdiff_t>(terms_.size()));
    inner.push_back(values[s]);
  }
  if (inner.size() < 2 || !varies(inner)) return std::nullopt;
  const auto bounded = [&](DimFormula of) -> std::optional<DimFormula> {
    const DerivedExtent extent{std::move(of), 1, most, least};
    return gives(extent, values) ? derive(dim, extent, values) : std::nullopt;
  };
  const auto moved = [&](DimFormula of) {
    for (size_t s = 0; s < values.size(); ++s) {
      if (values[s] <= least || values[s] >= most) continue;
      of.offset += values[s] - evaluate(of, samples_[s]);
      break;
    }
    return of;
  };
  if (!is_quotient) {
    if (auto formula = bounded(moved(single(1, identity(dim))))) return formula;
    for (const auto& [extents, formula] : known_) {
      if (!formula || !varies(extents)) continue;
      if (auto found = bounded(moved(*formula))) return found;
    }
    return std::nullopt;
  }
  if (inner.size() < kFewest) return std::nullopt;
  DimFitter between(std::move(inner_samples));
  std::optional<DimFormula> formula = between.fit_line(dim, inner);
  if (!formula) formula = between.fit_quotient(dim, inner);
  return formula ? bounded(*formula) : std::nullopt;
}

/// The dim, or a known extent of it, and a number, up to or down to a bound that several samples reach.
std::optional<DimFormula> DimFitter::fit_bounded(size_t dim, const std::vector<int64_t>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const auto is_reached = [&](int64_t bound) { return std::count(values.begin(), values.end(), bound) >= 2; };
  constexpr DerivedExtent kOpen{};
  const bool has_most = *high >= 0 && is_reached(*high), has_least = is_reached(*low);
  // A quotient is near what two bounds make of a sum.
  for (const bool is_quotient : {false, true}) {
    std::optional<DimFormula> formula;
    if (has_most) formula = fit_within(dim, values, kOpen.least, *high, is_quotient);
    if (!formula && has_least) formula = fit_within(dim, values, *low, kOpen.most, is_quotient);
    if (!formula && has_most && has_least) formula = fit_within(dim, values, *low, *high, is_quotient);
    if (formula) return formula;
  }
  return std::nullopt;
}

/// What is one number up to an extent, which is the last of its kind, and another one behind it, up to the
/// largest extent of the dim.
std::optional<DimFormula> DimFitter::fit_step(size_t dim, const std::vector<int64_t>& values) {
  if (dim >= maximums_.size() || maximums_[dim] == 0) return std::nullopt;
  std::map<int64_t, int64_t> along;
  int64_t multiple = 0;
  for (size_t s = 0; s < samples_.size(); ++s) {
    if (!differs_alone(s, dim)) continue;
    along[samples_[s][dim]] = values[s];
    multiple = std::gcd(multiple, samples_[s][dim] - samples_[0][dim]);
  }
  auto behind = std::find_if(along.begin(), along.end(),
                             [&](const auto& each) { return each.second != along.begin()->second; });
  if (behind == along.end() || along.rbegin()->first + multiple <= maximums_[dim]) return std::nullopt;
  const bool stays =
      std::all_of(behind, along.end(), [&](const auto& each) { return each.second == behind->second; });
  if (!stays || std::prev(behind)->first + multiple != behind->first) return std::nullopt;
  DimFormula before = single(1, identity(dim));
  before.offset = 1 - behind->first;
  std::optional<DimFormula> step = derived_dim({before, 1, 1, 0});
  if (!step) return std::nullopt;
  const DimFormula result =
      sum_of({along.begin()->second, {}}, product_of(*step, {behind->second - along.begin()->second, {}}), 1);
  return holds(result, values) ? std::optional(result) : std::nullopt;
}

/// Of a free dim alone. What is made of an extent times a factor is near a quotient of a large divisor, too:
/// small ones, of the dim and then of what is derived from it, come before those.
std::optional<DimFormula> DimFitter::fit_one_dim(size_t dim, const std::vector<int64_t>& values) {
  if (auto formula = fit_scaled(dim, values)) return formula;
  if (auto formula = fit_line(dim, values)) return formula;
  for (size_t i = 0; i <= derived_.size(); ++i) {
    if (std::find(derived_of_.begin(), derived_of_.end(), dim) == derived_of_.end()) break;
    if (i > 0 && derived_of_[i - 1] != dim) continue;
    const size_t of = i == 0 ? dim : terms_.size() + i - 1;
    if (auto formula = fit_line(of, values)) return formula;
    if (auto formula = fit_small_quotient(of, values)) return formula;
  }
  if (auto formula = fit_quotient(dim, values)) return formula;
  if (auto formula = fit_bounded(dim, values)) return formula;
  return fit_step(dim, values);
}

std::optional<DimFormula> DimFitter::fit_product(const std::vector<int64_t>& values,
                                                 const std::vector<size_t>& dims) const {
  // One or two factors of each dim: heights times widths, and squares of lengths.
  std::vector<std::vector<DimTerm>> products = {{}};
  for (const size_t dim : dims) {
    std::vector<std::vector<DimTerm>> longer;
    for (const std::vector<DimTerm>& product : products) {
      for (auto a = terms_[dim].begin(); a != terms_[dim].end(); ++a) {
        longer.push_back(product);
        longer.back().push_back(*a);
        for (auto b = a; b != terms_[dim].end() && terms_[dim].size() <= 8; ++b) {
          longer.push_back(product);
          longer.back().push_back(*a);
          longer.back().push_back(*b);
        }
      }
    }
    products = std::move(longer);
  }
  std::stable_sort(products.begin(), products.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  for (const int64_t offset : {0, -1, 1}) {
    for (const std::vector<DimTerm>& product : products) {
      DimFormula formula{0, {{1, product}}};
      const int64_t first = evaluate(formula, samples_[0]);
      if (first == 0 || (values[0] - offset) % first != 0) continue;
      formula.products[0].scale = (values[0] - offset) / first;
      formula.offset = offset;
      if (holds(formula, values)) return formula;
    }
  }
  return std::nullopt;
}

/// a × one quotient + b × another + c: what pads to a multiple, and what remains of a division.
std::optional<DimFormula> DimFitter::fit_two_quotients(size_t dim, const std::vector<int64_t>& values) const {
  for (auto first = terms_[dim].begin(); first != terms_[dim].end(); ++first) {
    for (auto second = std::next(first); second != terms_[dim].end(); ++second) {
      std::vector<int64_t> a, b;
      for (const std::vector<int64_t>& sample : samples_) {
        a.push_back(evaluate(*first, sample) - evaluate(*first, samples_[0]));
        b.push_back(evaluate(*second, sample) - evaluate(*second, samples_[0]));
      }
      // Cramer's rule for two samples that are independent; the others decide.
      for (size_t s = 1; s + 1 < samples_.size(); ++s) {
        const int64_t determinant = a[s] * b[s + 1] - a[s + 1] * b[s];
        if (determinant == 0) continue;
        const int64_t y0 = values[s] - values[0], y1 = values[s + 1] - values[0];
        const int64_t x = y0 * b[s + 1] - y1 * b[s], y = a[s] * y1 - a[s + 1] * y0;
        if (x % determinant != 0 || y % determinant != 0) break;
        DimFormula formula{0, {{x / determinant, {*first}}, {y / determinant, {*second}}}};
        formula.offset = values[0] - evaluate(formula, samples_[0]);
        if (x != 0 && y != 0 && holds(formula, values)) return formula;
        break;
      }
    }
  }
  return std::nullopt;
}

const DimFormula* DimFitter::find_known(const std::vector<int64_t>& values) const {
  const auto found = known_.find(values);
  return found != known_.end() && found->second && varies(values) ? &*found->second : nullptr;
}

std::optional<DimFormula> DimFitter::fit(const std::vector<int64_t>& values) {
  TM_CHECK(values.size() == samples_.size(), "one value a sample");
  if (const auto found = known_.find(values); found != known_.end()) return found->second;
  // What is left of values that are divided may be themselves.
  if (!open_.insert(values).second) return std::nullopt;
  std::optional<DimFormula> formula = find(values);
  open_.erase(values);
  // No package holds it.
  if (formula && !package::fits_package(*formula)) formula.reset();
  return known_.emplace(values, std::move(formula)).first->second;
}

std::optional<DimFormula> DimFitter::find(const std::vector<int64_t>& values) {
  if (!varies(values)) return DimFormula{values[0], {}};
  const std::vector<size_t> dims = dims_of(values);
  std::optional<DimFormula> formula = fit_ratio(values, dims);
  if (!formula) formula = fit_other_ratio(values, dims);
  if (!formula && (dims.size() != 1 || !fit_line(dims[0], values))) {
    formula = fit_slice(values, {});
    if (!formula) formula = fit_last(values, std::vector<bool>(values.size(), true));
  }
  if (formula) return formula;
  if (dims.size() == 1) formula = fit_one_dim(dims[0], values);
  if (formula) {
    // A quotient, with its offset in it where that goes, is a term of its own for what is to come.
    DimFormula whole = *formula;
    const DimProduct& product = whole.products[0];
    if (whole.offset != 0 && whole.offset % product.scale == 0) take_inside(whole);
    terms_[dims[0]].insert(product.factors[0]);
    return formula;
  }
  if (dims.empty()) return fit_least(values);
  if (dims.size() == 1) formula = fit_two_quotients(dims[0], values);
  if (!formula) formula = fit_product(values, dims);
  if (!formula) formula = fit_sum(values, dims);
  if (!formula) formula = fit_multiple(values);
  if (!formula) formula = fit_half(values, dims);
  if (!formula && dims.size() > 1) formula = fit_apart(values, dims);
  if (!formula) formula = fit_multiple_of_fewer(values, dims);
  if (!formula && dims.size() > 1) formula = fit_sum_apart(values);
  if (!formula && dims.size() > 1) formula = fit_bounded_sum(values);
  if (!formula && dims.size() > 1) formula = fit_quotient_of_sum(values, dims);
  return formula ? formula : fit_least(values);
}

}  // namespace tensormill::plan
