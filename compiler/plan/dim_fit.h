/// Finds how an extent depends on the free dims from its values in several samples. A formula is taken when
/// it gives the value of every sample; samples are many more than a formula has parameters, and move each dim
/// by steps without a common factor. Thread-safety: a fitter belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/dim_formula.h"

namespace tensormill::plan {

class DimFitter {
public:
  /// `samples`: values of the free dims, one row a sample.
  explicit DimFitter(std::vector<std::vector<int64_t>> samples);

  /// A formula over one dim, or a product of such as were found before; nothing when there is none.
  std::optional<DimFormula> fit(const std::vector<int64_t>& values);

private:
  bool holds(const DimFormula& formula, const std::vector<int64_t>& values) const;
  bool depends_on(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_single(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_quotient(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_product(const std::vector<int64_t>& values,
                                        const std::vector<size_t>& dims) const;

  std::vector<std::vector<int64_t>> samples_;
  std::vector<std::set<DimTerm>> terms_;  ///< by dim: its own value and the quotients found
};

}  // namespace tensormill::plan
