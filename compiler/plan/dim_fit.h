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

/// Along one axis a model's slice from `start` on up to `end`, as the standard says both, of what has the
/// extent: one value a sample each.
struct SliceFact {
  std::vector<int64_t> extent, start, end;
  int64_t step = 1;
};

class DimFitter {
public:
  /// `samples`: values of the free dims, one row a sample. `factors`: by what the model multiplies extents
  /// and is no small quotient: what is a known extent times one of them is a dim of its own for what follows.
  explicit DimFitter(std::vector<std::vector<int64_t>> samples, std::vector<float> factors = {});

  /// The largest value of each free dim, 0 where there is none, or nothing: what changes once up to there
  /// does not change again.
  void set_maximums(std::vector<int64_t> maximums) { maximums_ = std::move(maximums); }
  /// Small quotients by which the model multiplies extents.
  void set_quotients(std::vector<float> quotients) { quotients_ = std::move(quotients); }

  /// One more factor, the float32 quotient of two numbers; nothing happens where one of them has no formula.
  void add_ratio(const std::vector<int64_t>& up, const std::vector<int64_t>& down);

  /// What an axis that ends before one of its places makes of a slice is told from those, not from samples.
  void add_slice(SliceFact slice);

  /// A formula over one dim, a product of such as were found before, or the sum, difference or product of two
  /// extents that were, the sum of one and a number, of one and a formula of fewer dims, or of a formula of
  /// each dim, an extent times a formula of fewer dims; nothing when there is none. Equal values have one
  /// formula, whoever asks: two extents that are equal in all samples are equal everywhere.
  std::optional<DimFormula> fit(const std::vector<int64_t>& values);
  /// A formula that gives the values of the samples that `counts` names; the others may have any.
  std::optional<DimFormula> fit_some(const std::vector<int64_t>& values, const std::vector<bool>& counts);
  /// Whether each dim that differs in the samples does so in those that `counts` names, or else has been seen
  /// to be none of which another value counts.
  bool are_told(const std::vector<bool>& counts) const;
  /// The dims of formulas behind the free ones, so far.
  const std::vector<DerivedExtent>& derived() const { return derived_; }

private:
  std::optional<DimFormula> find(const std::vector<int64_t>& values);
  bool holds(const DimFormula& formula, const std::vector<int64_t>& values) const;
  bool differs_alone(size_t sample, size_t dim) const;
  bool depends_on(size_t dim, const std::vector<int64_t>& values) const;
  std::vector<size_t> dims_of(const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_line(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_growth(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_period(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_quotient(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_small_quotient(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_one_dim(size_t dim, const std::vector<int64_t>& values);
  std::optional<DimFormula> fit_scaled(size_t dim, const std::vector<int64_t>& values);
  std::optional<DimFormula> fit_ratio(const std::vector<int64_t>& values, const std::vector<size_t>& dims);
  std::optional<DimFormula> fit_other_ratio(const std::vector<int64_t>& values,
                                            const std::vector<size_t>& dims);
  std::optional<DimFormula> fit_half(const std::vector<int64_t>& values, const std::vector<size_t>& dims);
  std::optional<DimFormula> fit_bounded(size_t dim, const std::vector<int64_t>& values);
  std::optional<DimFormula> fit_within(size_t dim, const std::vector<int64_t>& values, int64_t least,
                                       int64_t most, bool is_quotient);
  std::optional<DimFormula> fit_bounded_sum(const std::vector<int64_t>& values);
  std::optional<DimFormula> fit_quotient_of_sum(const std::vector<int64_t>& values,
                                                const std::vector<size_t>& dims);
  std::optional<DimFormula> fit_least(const std::vector<int64_t>& values);
  std::optional<DimFormula> fit_extreme(const std::vector<int64_t>& values, bool is_least);
  size_t size_of(const DimFormula& formula) const;
  bool gives(const DerivedExtent& extent, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> derive(size_t dim, DerivedExtent extent, const std::vector<int64_t>& values);
  std::optional<DimFormula> fit_phase(DimFormula formula, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_two_quotients(size_t dim, const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_product(const std::vector<int64_t>& values,
                                        const std::vector<size_t>& dims) const;
  std::optional<DimFormula> fit_sum(const std::vector<int64_t>& values, const std::vector<size_t>& dims);
  std::optional<DimFormula> fit_apart(const std::vector<int64_t>& values,
                                      const std::vector<size_t>& dims) const;
  std::optional<DimFormula> fit_multiple(const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_sum_apart(const std::vector<int64_t>& values) const;
  std::optional<DimFormula> fit_multiple_of_fewer(const std::vector<int64_t>& values,
                                                  const std::vector<size_t>& dims);
  std::optional<DimFormula> fit_step(size_t dim, const std::vector<int64_t>& values);
  std::optional<DimFormula> fit_last(const std::vector<int64_t>& values,
                                     const std::vector<bool>& counts) const;
  std::optional<DimFormula> fit_slice(const std::vector<int64_t>& values, const std::vector<bool>& counts);
  size_t slices_like(const std::vector<int64_t>& values, const std::vector<bool>& counts) const;
  std::optional<DimFormula> bounded(const DimFormula& of, int64_t least, int64_t most);
  std::optional<DimFormula> derived_dim(const DerivedExtent& extent);
  std::optional<DimFormula> lesser(const DimFormula& a, const DimFormula& b);
  std::optional<DimFormula> place_in(const SliceFact& slice, const std::vector<int64_t>& places,
                                     int64_t least);
  std::optional<DimFormula> start_of(const SliceFact& slice);
  std::optional<DimFormula> extent_of(const SliceFact& slice);
  const DimFormula* find_known(const std::vector<int64_t>& values) const;

  std::vector<std::vector<int64_t>> samples_;  ///< behind the free dims: the derived extents
  std::vector<float> factors_;
  std::vector<int64_t> maximums_;
  std::vector<float> quotients_;
  std::vector<ExtentRatio> ratios_;
  std::vector<SliceFact> slices_;
  std::set<std::vector<int64_t>> open_;  ///< that are being looked for
  std::set<size_t> open_slices_;         ///< that are being looked at
  std::vector<DerivedExtent> derived_;
  std::vector<size_t> derived_of_;  ///< by derived extent: the free dim that decides it
  std::map<std::vector<int64_t>, std::optional<DimFormula>> known_;
  std::vector<std::set<DimTerm>> terms_;  ///< by free dim: its own value, quotients and derived extents found
};

}  // namespace tensormill::plan
