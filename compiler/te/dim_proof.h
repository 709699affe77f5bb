/// The facts that concern a few dims, as the prover of the loop IR takes them. Not for other folders: use
/// dim_facts.h. Thread-safety: an object belongs to one thread and must not outlive its facts.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/te/dim_facts.h"

namespace tensormill::te {

class DimProof {
public:
  /// For questions about dims of the symbols in `dims`, which are normalized.
  DimProof(const DimFacts& facts, const std::vector<Dim>& dims);
  bool nonpositive(const Dim& dim);
  Interval bounds(const Dim& dim) { return context_.bounds(expr(dim)); }

private:
  void gather_facts();
  void name_atoms(const Dim& dim);
  void bound_calls();
  void bound_division(const DimAtom& atom);
  void add_products(const std::vector<Dim>& dims);
  Interval call_bounds(const DimAtom& atom);
  Expr expr(const Dim& dim);
  void assume(const Dim& nonpositive) { context_.assume(expr(nonpositive) <= Expr(0)); }

  const DimFacts& facts_;
  std::map<std::string, Var> variables_;
  std::set<Atom> named_;
  std::map<std::string, Atom> calls_;  ///< by text, without bounds yet
  std::vector<Atom> divisions_;        ///< by dims that are no constants
  std::vector<Dim> known_;             ///< nonpositive
  BoundsContext context_;
};

/// By which of its symbols an equation zero == 0 is solved, the greatest first: one that is the sum of the
/// others rather than a difference, then by declaration, the last one first, and before all one that was not
/// declared.
struct SolvingOrder {
  bool is_sum = false;
  size_t declared = 0;
  auto operator<=>(const SolvingOrder&) const = default;
};
SolvingOrder solving_order(const Dim& zero, const std::string& symbol, const DimFacts& facts);

}  // namespace tensormill::te
