/// Finds how an extent depends on the free dims from its values in several samples. A formula is taken when
/// it gives the value of every sample. The samples must tell the formulas of the family apart: along each dim
/// near neighbours, a far one from which the growth follows, neighbours between which the extent changes
/// (frontend/onnx/shape_samples.h). Thread-safety: a fitter belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/dim_formula.h"

namespace tensormill::plan {

class DimFitter {
public:
  /// `samples`: values of the free dims, one row a sample.
  explicit DimFitter(std::vector<std::vector<int64_t>> samples);

  /// A formula over one dim, a product of such as were found before, or the sum, difference or product of two
  /// extents that were, the sum of one and a number, or of one and a formula of fewer dims; nothing when
  /// there is none. Equal values have one formula, whoever asks: two extents that are equal in all samples
  /// are equal everywhere.
  std::optional<DimFormula> fit(const std::vector<int64_t>& values);

private:
  std::optional<DimFormula> find(const std::vector<int64_t>& values);
  bool holds(const DimFormula& formula, const std::vector<int64_t>& values) const;
  bool depends_on(size_t dim, const std::vector<int64_t>& values) const;
  std::vector<size_t> dims_of(const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_single(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_growth(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_period(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_quotient(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_phase(DimFormula formula, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_two_quotients(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_product(const std::vector<int64_t>& values,
                                        const std::vector<size_t>& dims) const;
  std::optional<DimFormula> fit_sum(const std::vector<int64_t>& values, const std::vector<size_t>& dims);
  std::optional<DimFormula> fit_multiple(const std::vector<int64_t>& values) const;
  const DimFormula* find_known(const std::vector<int64_t>& values) const;

  std::vector<std::vector<int64_t>> samples_;
  std::map<std::vector<int64_t>, std::optional<DimFormula>> known_;
  std::vector<std::set<DimTerm>> terms_;  ///< by dim: its own value and the quotients found
};

}  // namespace tensormill::plan
