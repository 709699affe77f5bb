// Where a slice starts and how much is left of it, where an axis may end before the places that it names, and
// what is told from those samples alone in which something has elements.
#include <algorithm>
#include <array>
#include <limits>

#include "compiler/plan/dim_algebra.h"
#include "compiler/plan/dim_fit.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
/// No axis is as long.
constexpr int64_t kMostPlace = int64_t{1} << 39;

/// A slice of one sample.
struct Taken {
  int64_t first = 0, extent = 0;
  std::array<bool, 3> is_cut =
      {};  ///< whether its start, its end or all of it is where the axis has no elements
};

Taken taken_of(const SliceFact& slice, size_t sample) {
  const int64_t n = slice.extent[sample], step = slice.step, size = step < 0 ? -step : step;
  const int64_t least = step < 0 ? -1 : 0, most = step < 0 ? n - 1 : n;
  const auto from_front = [&](int64_t place) { return place < 0 ? place + n : place; };
  const int64_t start = from_front(slice.start[sample]), end = from_front(slice.end[sample]);
  Taken taken;
  taken.first = std::min(std::max<int64_t>(start, 0), most);
  const int64_t stop = std::min(std::max(end, least), most);
  const int64_t way = step < 0 ? taken.first - stop : stop - taken.first;
  taken.extent = way <= 0 ? 0 : (way - 1) / size + 1;
  taken.is_cut = {taken.first != start, stop != end, way < 0};
  taken.first = std::max<int64_t>(taken.first, 0);
  return taken;
}

}  // namespace

void DimFitter::add_slice(SliceFact slice) { slices_.push_back(std::move(slice)); }

std::optional<DimFormula> DimFitter::derived_dim(const DerivedExtent& extent) {
  const auto same = std::find(derived_.begin(), derived_.end(), extent);
  if (same != derived_.end())
    return single(1, identity(terms_.size() + static_cast<size_t>(same - derived_.begin())));
  std::vector<int64_t> values;
  for (const std::vector<int64_t>& sample : samples_) values.push_back(evaluate(extent, sample));
  const std::vector<size_t> dims = dims_of(values);
  return derive(dims.size() == 1 ? dims[0] : terms_.size(), extent, values);
}

/// The formula within bounds: itself where it is seen not to leave them.
std::optional<DimFormula> DimFitter::bounded(const DimFormula& of, int64_t least, int64_t most) {
  if (of.products.empty()) return DimFormula{std::max(std::min(of.offset, most), least), {}};
  const DimProduct& product = of.products[0];
  const bool is_extent = of.products.size() == 1 && product.scale > 0 && product.factors.size() == 1 &&
                         product.factors[0].mul >= 0 && product.factors[0].add >= 0 &&
                         static_cast<size_t>(product.factors[0].dim) < terms_.size();
  if (is_extent && least <= of.offset && most >= kMostPlace) return of;
  return derived_dim({of, 1, most, least});
}

/// a without what it has more than b.
std::optional<DimFormula> DimFitter::lesser(const DimFormula& a, const DimFormula& b) {
  if (a.products.empty()) return a.offset >= kMostPlace ? b : bounded(b, kLeast, a.offset);
  const std::optional<DimFormula> more = bounded(sum_of(a, b, -1), 0, kMost);
  return more ? std::optional(sum_of(a, *more, -1)) : std::nullopt;
}

/// Counted from the front, within the axis. Places are of either sign.
std::optional<DimFormula> DimFitter::place_in(const SliceFact& slice, const std::vector<int64_t>& places,
                                              int64_t least) {
  const std::optional<DimFormula> extent = fit(slice.extent), place = fit(places);
  if (!extent || !place) return std::nullopt;
  DimFormula most = *extent, front = *place;
  if (slice.step < 0) --most.offset;
  const bool is_behind = place->products.empty() && place->offset < 0;
  if (is_behind && place->offset <= -kMostPlace) {
    front = {least, {}};
  } else if (is_behind) {
    front = sum_of(*extent, *place, 1);
  } else if (!place->products.empty()) {
    const std::optional<DimFormula> is_below = bounded(sum_of({0, {}}, *place, -1), 0, 1);
    if (!is_below) return std::nullopt;
    front = sum_of(front, product_of(*extent, *is_below), 1);
  }
  const std::optional<DimFormula> inside = bounded(front, least, kMost);
  // What is in front of the end is within the axis, if that has elements or a place in front of them.
  if (!inside || (is_behind && (slice.step > 0 || least < 0))) return inside;
  return lesser(*inside, most);
}

/// Going backwards through no elements there is none to start at.
std::optional<DimFormula> DimFitter::start_of(const SliceFact& slice) {
  const std::optional<DimFormula> first = place_in(slice, slice.start, 0);
  return first && slice.step < 0 ? bounded(*first, 0, kMost) : first;
}

std::optional<DimFormula> DimFitter::extent_of(const SliceFact& slice) {
  const std::optional<DimFormula> first = place_in(slice, slice.start, 0);
  const std::optional<DimFormula> stop = place_in(slice, slice.end, slice.step < 0 ? -1 : 0);
  if (!first || !stop) return std::nullopt;
  const DimFormula way = slice.step < 0 ? sum_of(*first, *stop, -1) : sum_of(*stop, *first, -1);
  const int64_t size = slice.step < 0 ? -slice.step : slice.step;
  if (way.products.empty()) return DimFormula{way.offset <= 0 ? 0 : (way.offset - 1) / size + 1, {}};
  if (size == 1) return bounded(way, 0, kMost);
  std::optional<DimFormula> whole = derived_dim({way, 1, kMost, 0});
  if (!whole) return std::nullopt;
  DimTerm& term = whole->products[0].factors[0];
  term.add = size - 1;
  term.div = size;
  return whole;
}

/// How many slices start at the counted values; they may have elements in other samples than those.
size_t DimFitter::slices_like(const std::vector<int64_t>& values, const std::vector<bool>& counts) const {
  return static_cast<size_t>(std::count_if(slices_.begin(), slices_.end(), [&](const SliceFact& slice) {
    for (size_t s = 0; s < values.size(); ++s) {
      if (counts[s] && values[s] != taken_of(slice, s).first) return false;
    }
    return true;
  }));
}

/// Of a slice that some samples show to be cut, and others not: where it starts, or what it leaves.
std::optional<DimFormula> DimFitter::fit_slice(const std::vector<int64_t>& values,
                                               const std::vector<bool>& counts) {
  const auto counted = [&](size_t s) { return counts.empty() || counts[s]; };
  const bool is_alone = !counts.empty() && slices_like(values, counts) == 1;
  const auto formula_of = [&](const SliceFact& slice) -> std::optional<DimFormula> {
    std::array<bool, 3> some = {}, all = {true, true, true};
    bool is_first = true, is_extent = true;
    for (size_t s = 0; s < values.size() && (is_first || is_extent); ++s) {
      const Taken taken = taken_of(slice, s);
      for (size_t i = 0; i < some.size(); ++i) {
        some[i] = some[i] || taken.is_cut[i];
        all[i] = all[i] && taken.is_cut[i];
      }
      // Of no elements nothing is known: of several slices, one that has some is not the one that is meant.
      if (!counted(s)) is_first = is_first && (is_alone || taken.extent == 0);
      if (!counted(s)) continue;
      is_first = is_first && values[s] == taken.first;
      is_extent = is_extent && values[s] == taken.extent;
    }
    if (some == all || (!is_first && !is_extent)) return std::nullopt;
    const std::optional<DimFormula> formula = is_extent ? extent_of(slice) : start_of(slice);
    for (size_t s = 0; s < values.size() && formula; ++s) {
      if (counted(s) && evaluate(*formula, samples_[s]) != values[s]) return std::nullopt;
    }
    return formula;
  };
  for (size_t i = 0; i < slices_.size(); ++i) {
    // Its own places may be asked for on the way.
    if (!open_slices_.insert(i).second) continue;
    const std::optional<DimFormula> formula = formula_of(slices_[i]);
    open_slices_.erase(i);
    if (formula) return formula;
  }
  return std::nullopt;
}

bool DimFitter::are_told(const std::vector<bool>& counts) const {
  const auto differ = [&](size_t a, size_t b, size_t dim) { return samples_[a][dim] != samples_[b][dim]; };
  const auto differ_alone = [&](size_t a, size_t b, size_t dim) {
    for (size_t d = 0; d < terms_.size(); ++d) {
      if (differ(a, b, d) != (d == dim)) return false;
    }
    return true;
  };
  for (size_t dim = 0; dim < terms_.size(); ++dim) {
    bool varies = false, is_told = false;
    const size_t first = static_cast<size_t>(std::find(counts.begin(), counts.end(), true) - counts.begin());
    for (size_t s = 0; s < counts.size() && !is_told; ++s) {
      varies = varies || differ(s, first, dim);
      is_told = differ(s, first, dim) && counts[s];
      for (size_t other = 0; other < counts.size() && !counts[s] && !is_told; ++other)
        is_told = counts[other] && differ_alone(s, other, dim);
    }
    if (varies && !is_told) return false;
  }
  return true;
}

/// Derived dims count for more than free ones.
size_t DimFitter::size_of(const DimFormula& formula) const {
  size_t size = formula.offset != 0 ? 1 : 0;
  for (const DimProduct& product : formula.products) {
    ++size;
    for (const DimTerm& term : product.factors)
      size += (term == identity(static_cast<size_t>(term.dim)) ? 1 : 2) +
              (static_cast<size_t>(term.dim) < terms_.size() ? 0 : 4);
  }
  return size;
}

std::optional<DimFormula> DimFitter::fit_some(const std::vector<int64_t>& values,
                                              const std::vector<bool>& counts) {
  TM_CHECK(values.size() == samples_.size() && counts.size() == samples_.size(), "one value a sample");
  std::vector<std::vector<int64_t>> samples;
  std::vector<int64_t> some;
  for (size_t s = 0; s < values.size(); ++s) {
    if (!counts[s]) continue;
    samples.emplace_back(samples_[s].begin(),
                         samples_[s].begin() + static_cast<std::ptrdiff_t>(terms_.size()));
    some.push_back(values[s]);
  }
  if (some.size() == values.size()) return fit(values);
  if (some.empty()) return std::nullopt;
  if (!varies(some)) return DimFormula{some[0], {}};
  if (std::optional<DimFormula> formula = fit_slice(values, counts)) return formula;
  // Too few samples have elements to tell it from others.
  if (slices_like(values, counts) != 0) return std::nullopt;
  // Several may hold in those samples: a dim itself, or else the shortest formula.
  const DimFormula* shortest = nullptr;
  for (const auto& [extents, formula] : known_) {
    bool holds = formula.has_value();
    for (size_t s = 0; s < values.size() && holds; ++s) holds = !counts[s] || extents[s] == values[s];
    if (holds && (shortest == nullptr || size_of(*formula) < size_of(*shortest))) shortest = &*formula;
  }
  if (shortest != nullptr) return *shortest;
  if (std::optional<DimFormula> formula = fit_last(values, counts)) return formula;
  DimFitter part(std::move(samples), factors_);
  const std::optional<DimFormula> formula = part.fit(some);
  return part.derived().empty() ? formula : std::nullopt;
}

/// The last place of a known extent.
std::optional<DimFormula> DimFitter::fit_last(const std::vector<int64_t>& values,
                                              const std::vector<bool>& counts) const {
  for (const auto& [extents, formula] : known_) {
    bool holds = formula.has_value();
    for (size_t s = 0; s < values.size() && holds; ++s) holds = !counts[s] || extents[s] == values[s] + 1;
    if (holds) return sum_of({-1, {}}, *formula, 1);
  }
  return std::nullopt;
}

}  // namespace tensormill::plan
