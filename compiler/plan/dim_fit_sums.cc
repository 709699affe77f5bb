// What is a sum or a product of several dims, and what of it ends at a bound or where another extent ends.
#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/plan/dim_algebra.h"
#include "compiler/plan/dim_fit.h"

namespace tensormill::plan {

/// What concatenation makes of extents, and slicing of a whole and a part: an extent that was found before,
/// and a number, another one, or, of which `dims` has more than one, anything over fewer dims.
std::optional<DimFormula> DimFitter::fit_sum(const std::vector<int64_t>& values,
                                             const std::vector<size_t>& dims) {
  for (const bool of_fewer : {false, true}) {
    for (const auto& [part, formula] : known_) {
      if (!formula || !varies(part)) continue;
      for (const int64_t sign : {1, -1}) {
        std::vector<int64_t> rest = values;
        for (size_t s = 0; s < rest.size(); ++s) rest[s] -= sign * part[s];
        if (!varies(rest)) return sum_of({rest[0], {}}, *formula, sign);
        if (const DimFormula* other = find_known(rest)) return sum_of(*other, *formula, sign);
        if (!of_fewer || dims_of(rest).size() >= dims.size()) continue;
        if (const std::optional<DimFormula> other = fit(rest)) return sum_of(*other, *formula, sign);
      }
    }
  }
  return std::nullopt;
}

/// A quotient, another extent or a number, times an extent: what reshaping makes of sums.
std::optional<DimFormula> DimFitter::fit_multiple(const std::vector<int64_t>& values) const {
  const auto divided = [&](const auto& by) -> const DimFormula* {
    std::vector<int64_t> rest = values;
    for (size_t s = 0; s < rest.size(); ++s) {
      const int64_t divisor = by(samples_[s]);
      if (divisor == 0 || rest[s] % divisor != 0) return nullptr;
      rest[s] /= divisor;
    }
    return find_known(rest);
  };
  for (const std::set<DimTerm>& terms : terms_) {
    for (const DimTerm& term : terms) {
      const DimFormula* rest =
          divided([&](const std::vector<int64_t>& sample) { return evaluate(term, sample); });
      if (rest == nullptr) continue;
      DimFormula formula = *rest;
      for (DimProduct& product : formula.products) product.factors.push_back(term);
      if (formula.offset != 0) formula.products.push_back({formula.offset, {term}});
      formula.offset = 0;
      return formula;
    }
  }
  for (const auto& [part, found] : known_) {
    if (!found || !varies(part)) continue;
    const DimFormula& formula = *found;
    const DimFormula* rest =
        divided([&](const std::vector<int64_t>& sample) { return evaluate(formula, sample); });
    if (rest != nullptr) return product_of(formula, *rest);
  }
  int64_t common = 0;
  for (const int64_t value : values) common = std::gcd(common, value);
  for (int64_t factor = 2; factor <= common; ++factor) {
    if (common % factor != 0) continue;
    const DimFormula* rest = divided([&](const std::vector<int64_t>&) { return factor; });
    if (rest == nullptr) continue;
    DimFormula formula = *rest;
    formula.offset *= factor;
    for (DimProduct& product : formula.products) product.scale *= factor;
    return formula;
  }
  return std::nullopt;
}

/// The sum of a formula of each dim, none of which was found before: each is told from the samples that
/// differ in its dim alone. That it is no product is told by samples in which the parts of any two differ.
std::optional<DimFormula> DimFitter::fit_apart(const std::vector<int64_t>& values,
                                               const std::vector<size_t>& dims) const {
  DimFormula sum{values[0], {}};
  std::vector<DimFormula> parts;
  for (const size_t dim : dims) {
    std::vector<std::vector<int64_t>> samples;
    std::vector<int64_t> own;
    for (size_t s = 0; s < samples_.size(); ++s) {
      if (!differs_alone(s, dim)) continue;
      samples.emplace_back(samples_[s].begin(),
                           samples_[s].begin() + static_cast<std::ptrdiff_t>(terms_.size()));
      own.push_back(values[s]);
    }
    DimFitter along(std::move(samples));
    const std::optional<DimFormula> formula = along.fit(own);
    if (!formula || !along.derived().empty()) return std::nullopt;
    parts.push_back(*formula);
    sum = sum_of(sum, *formula, 1);
    sum.offset -= values[0];
  }
  for (size_t a = 0; a < parts.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const bool differ = std::any_of(samples_.begin(), samples_.end(), [&](const auto& sample) {
        return evaluate(parts[a], sample) != values[0] && evaluate(parts[b], sample) != values[0];
      });
      if (!differ) return std::nullopt;
    }
  }
  return holds(sum, values) ? std::optional(sum) : std::nullopt;
}

/// An extent that was found before and what fit_apart finds for the rest: the elements of a box and what is
/// added at their ends.
std::optional<DimFormula> DimFitter::fit_sum_apart(const std::vector<int64_t>& values) const {
  for (const auto& [part, formula] : known_) {
    if (!formula || !varies(part)) continue;
    std::vector<int64_t> rest = values;
    for (size_t s = 0; s < rest.size(); ++s) rest[s] -= part[s];
    if (const std::optional<DimFormula> other = fit_apart(rest, dims_of(rest)))
      return sum_of(*other, *formula, 1);
  }
  return std::nullopt;
}

/// A dim or an extent that was found before, of `dims`, times anything over fewer of them, or over one.
std::optional<DimFormula> DimFitter::fit_multiple_of_fewer(const std::vector<int64_t>& values,
                                                           const std::vector<size_t>& dims) {
  const auto times = [&](const DimFormula& factor) -> std::optional<DimFormula> {
    std::vector<int64_t> rest = values;
    for (size_t s = 0; s < rest.size(); ++s) {
      const int64_t divisor = evaluate(factor, samples_[s]);
      if (divisor == 0 || rest[s] % divisor != 0) return std::nullopt;
      rest[s] /= divisor;
    }
    const size_t left = dims_of(rest).size();
    if (left > 1 && left >= dims.size()) return std::nullopt;
    const std::optional<DimFormula> other = fit(rest);
    return other ? std::optional(product_of(factor, *other)) : std::nullopt;
  };
  for (const size_t dim : dims) {
    if (const std::optional<DimFormula> formula = times(single(1, identity(dim)))) return formula;
  }
  for (const auto& [part, factor] : known_) {
    if (!factor || !varies(part)) continue;
    if (const std::optional<DimFormula> formula = times(*factor)) return formula;
  }
  return std::nullopt;
}

/// A known extent of several dims and a number, up to or down to a bound that several samples reach: the last
/// rows of a cache and of what is new.
std::optional<DimFormula> DimFitter::fit_bounded_sum(const std::vector<int64_t>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const int64_t least = *low, most = *high;
  const auto is_reached = [&](int64_t bound) { return std::count(values.begin(), values.end(), bound) >= 2; };
  std::vector<size_t> inner;  // samples
  for (size_t s = 0; s < values.size(); ++s) {
    if (values[s] > least && values[s] < most) inner.push_back(s);
  }
  const auto is_other = [&](size_t s) { return values[s] != values[inner[0]]; };
  if (!std::any_of(inner.begin(), inner.end(), is_other)) return std::nullopt;
  for (const auto& [down, up] : {std::pair(false, true), std::pair(true, false), std::pair(true, true)}) {
    if ((down && !is_reached(least)) || (up && (most < 0 || !is_reached(most)))) continue;
    for (const auto& [extents, formula] : known_) {
      if (!formula) continue;
      DerivedExtent extent{*formula};
      extent.of.offset += values[inner[0]] - extents[inner[0]];
      if (down) extent.least = least;
      if (up) extent.most = most;
      if (gives(extent, values)) return derive(terms_.size(), extent, values);
    }
  }
  return std::nullopt;
}

/// A quotient of a known extent and a multiple of one of the dims: the windows of a free size that strides
/// leave of it.
std::optional<DimFormula> DimFitter::fit_quotient_of_sum(const std::vector<int64_t>& values,
                                                         const std::vector<size_t>& dims) {
  constexpr int64_t kMostStride = 16, kMostDilation = 8;
  // The one that holds for a known extent, moved by a number inside of the quotient.
  const auto quotient_of =
      [&](const std::vector<int64_t>& sums) -> std::optional<std::pair<DimTerm, int64_t>> {
    for (int64_t div = 2; div <= kMostStride; ++div) {
      for (int64_t add = 0; add < div; ++add) {
        const DimTerm term{0, 1, add, div};
        const auto at = [&](size_t s) { return evaluate(term, std::vector<int64_t>{sums[s]}); };
        const int64_t offset = values[0] - at(0);
        size_t s = 1;
        while (s < values.size() && at(s) + offset == values[s]) ++s;
        if (s == values.size()) return std::pair(term, offset);
      }
    }
    return std::nullopt;
  };
  for (const size_t dim : dims) {
    for (const auto& [extents, formula] : known_) {
      if (!formula || !varies(extents) || depends_on(dim, extents)) continue;
      for (int64_t times = -kMostDilation; times <= kMostDilation; ++times) {
        if (times == 0) continue;
        std::vector<int64_t> sums = extents;
        for (size_t s = 0; s < sums.size(); ++s) sums[s] += times * samples_[s][dim];
        const auto found = quotient_of(sums);
        if (!found) continue;
        // All of it inside of the quotient, which is no less than 0 where the sum is not.
        const auto [term, offset] = *found;
        const int64_t inside = term.add + offset * term.div;
        for (int64_t& value : sums) value += inside;
        DerivedExtent sum{sum_of(*formula, single(times, identity(dim)), 1)};
        sum.of.offset += inside;
        const std::optional<DimFormula> whole = derive(terms_.size(), sum, sums);
        if (!whole) return std::nullopt;
        return single(1, {whole->products[0].factors[0].dim, 1, 0, term.div});
      }
    }
  }
  return std::nullopt;
}

/// The least or the largest of known extents: the rows that all have, those of the longest one.
std::optional<DimFormula> DimFitter::fit_least(const std::vector<int64_t>& values) {
  std::optional<DimFormula> formula = fit_extreme(values, true);
  return formula ? formula : fit_extreme(values, false);
}

namespace {

/// A known extent that is the wanted one in some samples, and beyond it in the others.
struct Candidate {
  const std::vector<int64_t>* values = nullptr;
  const DimFormula* formula = nullptr;
};

bool give(const std::vector<Candidate>& candidates, const std::vector<int64_t>& values) {
  for (size_t s = 0; s < values.size(); ++s) {
    const bool is_any = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
      return (*candidate.values)[s] == values[s];
    });
    if (!is_any) return false;
  }
  return true;
}

}  // namespace

std::optional<DimFormula> DimFitter::fit_extreme(const std::vector<int64_t>& values, bool is_least) {
  constexpr size_t kMost = 4;
  const auto size_of = [](const DimFormula& formula) {
    size_t size = formula.offset != 0 ? 1 : 0;
    for (const DimProduct& product : formula.products) size += 1 + 2 * product.factors.size();
    return size;
  };
  std::vector<Candidate> candidates;
  for (const auto& [extents, formula] : known_) {
    if (!formula || formula->products.empty()) continue;
    bool is_beyond = true, is_reached = false;
    for (size_t s = 0; s < values.size() && is_beyond; ++s) {
      is_beyond = is_least ? extents[s] >= values[s] : extents[s] <= values[s];
      is_reached = is_reached || extents[s] == values[s];
    }
    if (is_beyond && is_reached) candidates.push_back({&extents, &*formula});
  }
  if (!give(candidates, values)) return std::nullopt;
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    return size_of(*a.formula) < size_of(*b.formula);
  });
  for (size_t i = candidates.size(); i-- > 0;) {
    std::vector<Candidate> fewer = candidates;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (give(fewer, values)) candidates = std::move(fewer);
  }
  if (candidates.size() < 2 || candidates.size() > kMost) return std::nullopt;
  // The least of a and b is a without what it has more than b, the largest is b and that.
  DimFormula result = *candidates[0].formula;
  std::vector<int64_t> own = *candidates[0].values;
  for (size_t i = 1; i < candidates.size(); ++i) {
    const DimFormula other = *candidates[i].formula;
    DerivedExtent more{sum_of(result, other, -1)};
    more.least = 0;
    std::vector<int64_t> added;
    for (size_t s = 0; s < own.size(); ++s) {
      const int64_t next = (*candidates[i].values)[s];
      added.push_back(std::max<int64_t>(own[s] - next, 0));
      own[s] = is_least ? std::min(own[s], next) : std::max(own[s], next);
    }
    const std::optional<DimFormula> difference = derive(terms_.size(), more, added);
    if (!difference) return std::nullopt;
    result = is_least ? sum_of(result, *difference, -1) : sum_of(other, *difference, 1);
  }
  return result;
}

}  // namespace tensormill::plan
