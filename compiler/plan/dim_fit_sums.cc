// What of several dims ends at a bound.
#include <algorithm>
#include <utility>

#include "compiler/plan/dim_fit.h"

namespace tensormill::plan {

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

}  // namespace tensormill::plan
