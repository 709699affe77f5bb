/// Dims of a symbolic graph as a package's formulas over its free dims. Thread-safety: a table belongs to one
/// thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/te/dim_facts.h"
#include "runtime/base/extents/dim_formula.h"

namespace tensormill::plan {

class DimTable {
public:
  /// `symbols` stand for the free dims of the same places; `facts` outlive the table, and are complete
  /// where it is used first.
  DimTable(std::vector<std::string> symbols, std::vector<std::string> free_dims, const te::DimFacts& facts);

  /// The dim, simplified, as sums and products of free dims and of derived extents: one for each quotient,
  /// minimum, maximum and call in it, each once.
  DimFormula formula(const te::Dim& dim);
  /// The least that the dim is known to be for all shapes that the plan takes.
  std::optional<int64_t> least(const te::Dim& dim) const;
  bool is_never_negative(const te::Dim& dim);
  const te::Dim& simplified(const te::Dim& dim);
  /// The dim as it is, over the free dims, or over the first `count` of them.
  Extent extent(const te::Dim& dim) const;
  Extent free_extent(const te::Dim& dim, size_t count) const;
  const std::vector<DerivedExtent>& derived() const { return derived_; }
  size_t free_dims() const { return free_dims_.size(); }
  /// The value of a formula of this table's.
  int64_t evaluate(const DimFormula& formula, const std::vector<int64_t>& dims) const;
  /// The derived extents behind those that each point has already; points at which one has no value go: no
  /// run has them.
  void derive(std::vector<std::vector<int64_t>>& points) const;

private:
  int32_t index_of(const te::Atom& atom);
  int32_t derived_index(const te::Dim& dim);

  std::vector<std::string> symbols_, free_dims_;
  std::map<std::string, te::Dim> names_;  ///< by symbol: the free dim
  const te::DimFacts& facts_;
  std::vector<DerivedExtent> derived_;
  std::map<te::Dim, int32_t> index_;  ///< of atoms that are no symbols
  // Nodes of a model have few dims, and proofs take their time.
  std::map<te::Dim, te::Dim> simple_;
  std::map<te::Dim, bool> never_negative_;
};

}  // namespace tensormill::plan
