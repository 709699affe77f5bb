#include "compiler/plan/dim_table.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/package/plan_formulas.h"

namespace tensormill::plan {

DimTable::DimTable(std::vector<std::string> symbols, std::vector<std::string> free_dims,
                   const te::DimFacts& facts)
    : symbols_(std::move(symbols)), free_dims_(std::move(free_dims)), facts_(facts) {
  for (size_t i = 0; i < symbols_.size(); ++i) names_[symbols_[i]] = te::Dim::symbol(free_dims_[i]);
}

std::optional<int64_t> DimTable::least(const te::Dim& dim) const {
  if (const std::optional<int64_t> low = facts_.bounds(dim).low) return low;
  // Of minima and maxima each alone there may be no bound where there is one of all.
  constexpr int64_t kMost = 64;
  for (int64_t below = 1; below <= kMost; below *= 2) {
    if (facts_.prove_le(te::Dim(-below), dim) == te::Truth::kProven) return -below;
  }
  return std::nullopt;
}

Extent DimTable::extent(const te::Dim& dim) const {
  return dim.substitute(names_).extent().bound_to(free_dims_);
}

Extent DimTable::free_extent(const te::Dim& dim, size_t count) const {
  return dim.substitute(names_).extent().bound_to(std::span(free_dims_).first(count));
}

int32_t DimTable::index_of(const te::Atom& atom) {
  if (atom->kind == te::DimAtom::Kind::kSymbol) {
    const auto found = std::find(symbols_.begin(), symbols_.end(), atom->name);
    TM_CHECK(found != symbols_.end(), "dim " + atom->name + " is no free dim");
    return static_cast<int32_t>(found - symbols_.begin());
  }
  return derived_index(te::of_atom(atom));
}

int32_t DimTable::derived_index(const te::Dim& dim) {
  const auto next = static_cast<int32_t>(free_dims_.size() + derived_.size());
  const auto [found, is_new] = index_.emplace(dim, next);
  if (is_new) {
    if (derived_.size() >= static_cast<size_t>(package::kMaxDerivedExtents))
      throw Error(ErrorCode::kNotSupported, "the free dims make more extents than a package holds");
    derived_.push_back({{}});
    derived_.back().formula = extent(dim);
  }
  return found->second;
}

const te::Dim& DimTable::simplified(const te::Dim& dim) {
  const auto [known, is_new] = simple_.try_emplace(dim);
  if (is_new) known->second = facts_.simplify(dim);
  return known->second;
}

bool DimTable::is_never_negative(const te::Dim& dim) {
  const auto [known, is_new] = never_negative_.try_emplace(dim);
  if (is_new) known->second = facts_.prove_le(te::Dim(0), dim) == te::Truth::kProven;
  return known->second;
}

DimFormula DimTable::formula(const te::Dim& dim) {
  const te::Dim& simple = simplified(dim);
  DimFormula formula{simple.constant(), {}};
  // A longer sum, as of the counts of each class of a detector, is an extent of its own.
  if (simple.terms().size() > package::kMaxFormulaProducts) {
    formula.products.push_back({1, {{derived_index(simple - te::Dim(simple.constant())), 1, 0, 1}}});
    return formula;
  }
  for (const te::DimTerm& term : simple.terms()) {
    DimProduct product{term.coefficient, {}};
    for (const te::Atom& atom : term.factors) product.factors.push_back({index_of(atom), 1, 0, 1});
    std::sort(product.factors.begin(), product.factors.end());
    formula.products.push_back(std::move(product));
  }
  std::sort(formula.products.begin(), formula.products.end());
  if (!package::fits_package(formula))
    throw Error(ErrorCode::kNotSupported, "extent " + simple.to_string() + " is a formula that is too large");
  return formula;
}

int64_t DimTable::evaluate(const DimFormula& formula, const std::vector<int64_t>& dims) const {
  return tensormill::evaluate(formula, with_derived(dims, derived_));
}

void DimTable::derive(std::vector<std::vector<int64_t>>& points) const {
  std::erase_if(points, [&](std::vector<int64_t>& dims) {
    try {
      for (size_t i = dims.size() - free_dims_.size(); i < derived_.size(); ++i)
        dims.push_back(tensormill::evaluate(derived_[i], dims));
      return false;
    } catch (const Error& error) {
      static_cast<void>(error);
      return true;
    }
  });
}

}  // namespace tensormill::plan
